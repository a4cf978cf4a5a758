"""Printed terms in canonical form: what must be equal is, what must differ does."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_worker.engines.repl.printed import UnreadableTerm, read_term

EQUAL = [
    ("∀ (a b : Nat), @Eq.{1} Nat a b", "∀ (x : Nat) (y : Nat), @Eq.{1} Nat x y"),
    ("∀ (a : Nat), ∀ (b : Nat), P a b", "∀ (a b : Nat), P a b"),
    ("A → B → C", "∀ (x : A) {y : B}, C"),
    ("(A → B) → C", "∀ (f : A → B), C"),
    ("(x : A) → F x", "∀ (y : A), F y"),
    ("[Inhabited.{1} A] → B", "∀ [inst : Inhabited.{1} A], B"),
    ("f fun (x : A) => x", "f (fun (y : A) => y)"),
    ("have y : Nat := v; g y", "have z : Nat :=\n  v;\ng z"),
    ("∀ (n x✝ x✝¹ : Nat), P n x✝¹", "∀ (n a b : Nat), P n b"),
    ("(fun (Nat : Type) => Nat) Nat", "(fun (α : Type) => α) Nat"),
    ("∀ (p : Prod A B), Q p.1", "∀ (q : Prod A B), Q q.1"),
]
DIFFERENT = [
    ("∀ (a b : Nat), P a b", "∀ (a b : Nat), P b a"),
    ("∀ (x y x : Nat), P x y", "∀ (x y z : Nat), P x y"),
    ("(A → B) → C", "A → B → C"),
    ("∀ (a : A), B", "fun (a : A) => B"),
    ("let x : A := v; x", "have x : A := v; x"),
    ("∀ (a : Nat), P Nat", "∀ (a : Nat), P a"),
    ('P "a → b"', 'P "a → c"'),
    ("P 'x'", "P 'y'"),
    ("P (nat_lit 1)", "P (nat_lit 2)"),
    ("P (f x y)", "P (f (x y))"),
    ("P (f x) y", "P (f x y)"),
    ("P a.1", "P a.2"),
    ("∀ (Q : Prop), Q", "∀ (Q : Prop), R"),
    ("«a b» c", "«a» b c"),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_terms_are_equal(one, other):
    assert read_term(one).words == read_term(other).words


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_terms_differ(one, other):
    assert read_term(one).words != read_term(other).words


def test_universe_parameters_count_by_position():
    text = "∀ (α : Type {0}) (β : Sort (max {1} 1)), @Eq.{{{0} + 1}} α β"
    one = read_term(text.format("u", "v"), {"u": 0, "v": 1})
    assert one.words == read_term(text.format("w", "u"), {"w": 0, "u": 1}).words
    assert one.words != read_term(text.format("v", "u"), {"u": 0, "v": 1}).words


def test_binder_kinds_are_told_apart_on_their_own():
    explicit, implicit = read_term("∀ (a : A) [inst : B], C"), read_term("∀ {a : A} [inst : B], C")
    assert explicit.words == implicit.words
    assert (explicit.kinds, implicit.kinds) == (("(", "["), ("{", "["))


def test_constants_are_what_is_not_bound():
    term = read_term("∀ (a : Nat), @Eq.{1} Nat (f a) «b c».d")
    assert term.constants == {"Nat", "Eq", "f", "«b c».d"}


@pytest.mark.parametrize(
    "text", ["", "(", "f )", "∀ (a : A)", "fun (a : A) b", "let x := 1; x", '"', "(a : A)", "f ::"]
)
def test_what_is_no_term_is_refused(text):
    with pytest.raises(UnreadableTerm):
        read_term(text)


def test_depth_is_bounded_and_a_long_statement_is_none_the_less_read():
    assert read_term("f (" * 1500 + "x" + ")" * 1500)
    with pytest.raises(UnreadableTerm, match="deep"):
        read_term("f (" * 5000 + "x" + ")" * 5000)


@given(st.text(alphabet="ab ()[]{}⦃⦄∀→λ,.:=;@\"'«»fun let\n01", max_size=60))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(UnreadableTerm):
        read_term(text)


terms = st.recursive(
    st.one_of(
        st.integers(0, 3).map(lambda i: ("bound", i)),
        st.sampled_from(["A", "B.c", "Nat"]).map(lambda c: ("constant", c)),
    ),
    lambda inner: st.one_of(
        st.tuples(st.just("apply"), inner, inner),
        st.tuples(st.sampled_from(["∀", "fun"]), inner, inner),
        st.tuples(st.just("let"), inner, inner, inner),
    ),
    max_leaves=12,
)


def show(term, names, depth=0):
    """Print a term as Lean would, bound variables named by `names(depth)`."""
    kind, *parts = term
    if kind == "constant":
        return parts[0]
    if kind == "bound":
        return names(depth - 1 - parts[0] % depth) if depth else "A"
    if kind == "apply":
        return f"({show(parts[0], names, depth)} {show(parts[1], names, depth)})"
    if kind == "let":
        kind_, value = (show(part, names, depth) for part in parts[:2])
        return f"(let {names(depth)} : {kind_} := {value}; {show(parts[2], names, depth + 1)})"
    middle = "," if kind == "∀" else " =>"
    return f"({kind} ({names(depth)} : {show(parts[0], names, depth)}){middle} {show(parts[1], names, depth + 1)})"


@given(terms)
def test_names_of_bound_variables_never_matter(term):
    one = read_term(show(term, lambda depth: f"x{depth}"))
    other = read_term(show(term, lambda depth: f"«y {depth}»"))
    assert one == other


@given(terms, terms)
def test_terms_are_equal_exactly_when_they_are_the_same(one, other):
    def printed(term):
        return read_term(show(term, lambda depth: f"x{depth}")).words

    assert (printed(one) == printed(other)) == (shape(one) == shape(other))


def shape(term, depth=0):
    kind, *parts = term
    if kind == "constant":
        return parts[0]
    if kind == "bound":
        return depth - 1 - parts[0] % depth if depth else "A"
    if kind == "apply":
        return ("apply", shape(parts[0], depth), shape(parts[1], depth))
    inner = [shape(part, depth) for part in parts[:-1]]
    return (kind, *inner, shape(parts[-1], depth + 1))
