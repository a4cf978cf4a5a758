"""Shell text to syntax, by tree-sitter-bash.

A text that does not parse whole, is longer than ``TEXT_LIMIT`` characters (``SOURCE_LIMIT`` without its heredocs and
long single-quoted strings), nests deeper than ``words.DEPTH`` or has more syntax nodes than ``grammar.NODES`` gives
None: the rules that need syntax then stay silent, and no command costs more than a fraction of a second.
"""

from __future__ import annotations

from tree_sitter import Node as Tree

from services.process.grammar import encode, parse_tree
from services.process.shell import heredocs
from services.process.shell.syntax import Assignment, Group, Node, Pipeline, Redirect, Script, Simple, Word
from services.process.shell.words import DEPTH, EXPANSIONS, WORDS, Unsupported, WordReader, quote

TEXT_LIMIT = 1_048_576
SOURCE_LIMIT = 262_144

_TERMINATORS = {";;", ";&", ";;&"}
_SEPARATORS = {";", "&", "\n"} | _TERMINATORS
_RESERVED = {"do", "done", "then", "fi", "else", "elif", "esac", "if", "while", "until", "for", "case", "}"}
_ARITHMETIC = {
    "binary_expression", "unary_expression", "postfix_expression", "parenthesized_expression", "ternary_expression",
}  # fmt: skip
_KEYWORD_GROUPS = {
    "while_statement", "for_statement", "c_style_for_statement", "if_statement", "case_statement",
}  # fmt: skip


def parse(text: str) -> Script | None:
    """The syntax of a shell text, or None when it has none. Never raises."""
    if len(text) > TEXT_LIMIT:
        return None
    lifted = heredocs.lift(text.replace("\r\n", "\n").rstrip("\r"))
    if lifted is None or len(lifted[0]) > SOURCE_LIMIT:
        return None
    source, bodies = lifted
    data = encode(source)
    root = parse_tree("bash", data)
    # A case's terminator outside of a case is no shell, though the grammar lets it pass.
    if root is None or any(child.type in _TERMINATORS for child in root.children):
        return None
    try:
        return _Builder(data, bodies).script(root.children)
    except Unsupported:
        return None


class _Builder(WordReader):
    """Commands out of a tree; words come from the base."""

    def script(self, children: list[Tree]) -> Script:
        """A sequence of statements and separator tokens; other tokens (keywords, brackets) are skipped."""
        items: list[Node] = []
        separators: list[str] = []
        for child in children:
            kind = child.type
            if not child.is_named:
                if kind in _SEPARATORS and len(separators) < len(items):
                    separators.append("&" if kind == "&" else ";")
            elif kind != "comment":
                self.add(child, items, separators)
        if len(separators) == len(items) and separators and separators[-1] == ";":
            separators.pop()
        parts: list[str] = []
        for index, item in enumerate(items):
            parts.append(item.text)
            if index < len(separators):
                parts.append(separators[index])
        return Script(" ".join(parts), tuple(items), tuple(separators))

    def add(self, node: Tree, items: list[Node], separators: list[str]) -> None:
        """Appends a statement; a list ``a && b`` is spliced in, so that chains are flat."""
        if node.type == "list":
            spine: list[Tree] = [node]
            while spine[-1].children and spine[-1].children[0].type == "list":
                spine.append(spine[-1].children[0])
            pending = [spine[-1].children[0]] + [c for part in reversed(spine) for c in part.children[1:]]
            for child in pending:
                if child.is_named:
                    if child.type != "comment":
                        self.add(child, items, separators)
                elif child.type != "\n":
                    separators.append(child.type)
            return
        if node.type == "redirected_statement":
            body = node.child_by_field_name("body")
            if body is not None and body.type == "list":
                self.add(body, items, separators)
                items[-1] = self.redirected(items[-1], node)
                return
        if node.type == "pipeline" and _holds_list(node.children[0]):
            # The grammar reads `a && b < f | c` as `(a && b < f) | c`; only the last of the chain feeds the pipe.
            self.add(node.children[0], items, separators)
            items[-1] = self.pipeline(node, items[-1])
            return
        items.append(self.node(node))
        while len(separators) < len(items) - 1:
            separators.append(";")

    def node(self, node: Tree) -> Node:
        self.depth += 1
        if self.depth > DEPTH:
            raise Unsupported
        try:
            return self.statement(node)
        finally:
            self.depth -= 1

    def statement(self, node: Tree) -> Node:
        kind = node.type
        if kind == "command":
            return self.command(node)
        if kind == "redirected_statement":
            body = node.child_by_field_name("body")
            return self.redirected(Simple("", ()) if body is None else self.node(body), node)
        if kind == "pipeline":
            return self.pipeline(node)
        if kind in ("variable_assignment", "variable_assignments"):
            parts = [node] if kind == "variable_assignment" else node.named_children
            assignments = tuple(self.assignment(part) for part in parts)
            return Simple(" ".join(a.text for a in assignments), (), assignments)
        if kind in ("declaration_command", "unset_command"):
            words = tuple(self.argument(child) for child in node.children if child.type != "comment")
            return Simple(" ".join(w.text for w in words), words)
        if kind == "list":
            items: list[Node] = []
            separators: list[str] = []
            self.add(node, items, separators)
            text = " ".join(
                part for pair in zip(items, [*separators, ""], strict=False) for part in (pair[0].text, pair[1])
            )
            return Script(text.strip(), tuple(items), tuple(separators))
        return self.group(node)

    def command(self, node: Tree) -> Simple:
        words: list[Word] = []
        assignments: list[Assignment] = []
        redirects: list[Redirect] = []
        for child in node.children:
            kind = child.type
            if kind == "variable_assignment":
                assignments.append(self.assignment(child))
            elif kind in ("file_redirect", "herestring_redirect"):
                redirect, extra = self.redirect(child)
                redirects.append(redirect)
                words += extra
            elif kind == "command_name":
                if not (words or assignments or redirects) and self.raw(child) in _RESERVED:
                    raise Unsupported  # the grammar takes a stray keyword for a program's name, bash does not
                words.append(self.word(child.children[0]) if child.child_count else self.literal(self.raw(child)))
            elif kind not in ("comment", "$"):  # the dollar of $"..."
                words.append(self.word(child))
        return _simple(words, assignments, redirects)

    def redirected(self, body: Node, node: Tree) -> Node:
        redirects: list[Redirect] = []
        extra: list[Word] = []
        for child in node.children:
            if child.type in ("file_redirect", "herestring_redirect"):
                redirect, more = self.redirect(child)
                redirects.append(redirect)
                extra += more
            elif child.type == "heredoc_redirect":
                raise Unsupported
        return _attach(body, redirects, extra)

    def redirect(self, node: Tree) -> tuple[Redirect, list[Word]]:
        """A redirection, and the words that the grammar took for further targets: they are arguments."""
        descriptor = operator = ""
        targets: list[Word] = []
        for child in node.children:
            if child.type == "file_descriptor":
                descriptor = self.raw(child)
            elif not child.is_named and not operator:
                operator = child.type
            else:
                targets.append(self.word(child))
        target = targets[0] if targets else Word("")
        heredoc = self.bodies.get(target.value or "")
        if heredoc is not None and operator == "<":
            operator = "<<"
            text = quote(heredoc.body) if heredoc.constant else f'"{heredoc.body}"'
            target = Word(text, heredoc.body if heredoc.constant else None, heredoc.constant, opaque=heredoc.runs)
        if (operator.startswith(">") and descriptor == "1") or (operator.startswith("<") and descriptor == "0"):
            descriptor = ""
        return Redirect(operator, descriptor, target, f"{descriptor}{operator}{target.text}"), targets[1:]

    def pipeline(self, node: Tree, first: Node | None = None) -> Node:
        stages: list[Node] = [] if first is None else [first]
        parts = [stage.text for stage in stages]
        for child in node.children[len(stages) :]:
            if child.type == "comment" or child.type == "\n":
                continue
            if child.is_named:
                stages.append(self.node(child))
                parts.append(stages[-1].text)
            else:
                parts.append(child.type)
        return Pipeline(" ".join(parts), tuple(stages))

    def group(self, node: Tree) -> Node:
        kind = node.type
        if kind == "subshell":
            body = self.script(node.children)
            return Group(f"( {body.text} )", "(", (body,))
        if kind == "compound_statement":
            if node.children[0].type == "((":
                return Group(self.tokens(node), "((", self.nested(node))
            body = self.script(node.children)
            return Group(f"{{ {body.text} ; }}", "{", (body,))
        if kind == "negated_command":
            body = self.script([c for c in node.children if c.type != "!"])
            return Group(f"! {body.text}", "!", (body,))
        if kind == "test_command":
            return Group(self.tokens(node), "[[", self.nested(node))
        if kind == "function_definition":
            name = node.child_by_field_name("name")
            body = self.script([c for c in node.named_children if c != name])
            label = self.raw(name) if name is not None else ""
            return Group(f"{label} () {body.text}", "function", (body,), name=label)
        if kind in _KEYWORD_GROUPS:
            return self.keyword_group(node)
        if kind in ("do_group", "elif_clause", "else_clause", "case_item"):
            return self.script(node.children)
        return Group(self.tokens(node), "opaque", self.nested(node))

    def keyword_group(self, node: Tree) -> Group:
        """``if``, ``while``, ``until``, ``for``, ``select``, ``case``: keywords as written, clauses as scripts."""
        parts: list[str] = []
        bodies: list[Script] = []
        words: list[Word] = []
        run: list[Tree] = []

        def flush() -> None:
            script = self.script(run)
            if script.items:
                bodies.append(script)
                parts.append(script.text + " ;")
            run.clear()

        pending = list(reversed(node.children))
        while pending:
            child = pending.pop()
            kind = child.type
            if kind in ("do_group", "elif_clause", "else_clause", "case_item"):
                flush()
                pending.extend(reversed(child.children))
            elif kind in WORDS or kind in EXPANSIONS or kind in ("extglob_pattern", "regex"):
                flush()
                words.append(self.word(child))
                parts.append(words[-1].text)
            elif kind in _ARITHMETIC:
                flush()
                parts.append(self.tokens(child))
                bodies += self.nested(child)
            elif child.is_named or kind in (";", "&", "\n"):
                run.append(child)
            else:
                flush()
                if kind == "do" and not parts[-1].endswith(";"):
                    parts.append(";")
                parts.append(kind)
        flush()
        return Group(" ".join(parts), node.children[0].type, tuple(bodies), tuple(words))


def _holds_list(node: Tree) -> bool:
    body = node.child_by_field_name("body") if node.type == "redirected_statement" else None
    return body is not None and body.type == "list"


def _simple(words: list[Word], assignments: list[Assignment], redirects: list[Redirect]) -> Simple:
    text = " ".join([a.text for a in assignments] + [w.text for w in words] + [r.text for r in redirects])
    return Simple(text, tuple(words), tuple(assignments), tuple(redirects))


def _attach(body: Node, redirects: list[Redirect], extra: list[Word]) -> Node:
    """Gives redirections to their command: the last one of a chain or a pipeline, else the compound."""
    if isinstance(body, Simple):
        return _simple([*body.words, *extra], list(body.assignments), [*body.redirects, *redirects])
    suffix = " ".join(r.text for r in redirects)
    if isinstance(body, Pipeline):
        last = _attach(body.stages[-1], redirects, extra)
        text = body.text[: len(body.text) - len(body.stages[-1].text)] + last.text
        return Pipeline(text, (*body.stages[:-1], last))
    if isinstance(body, Group) and not extra:
        if body.kind == "!":
            inner = body.bodies[0]
            last = _attach(inner.items[-1], redirects, [])
            script = Script(last.text, (*inner.items[:-1], last), inner.separators)
            return Group(f"! {script.text}", "!", (script,))
        return Group(
            f"{body.text} {suffix}", body.kind, body.bodies, body.words, (*body.redirects, *redirects), body.name
        )
    raise Unsupported
