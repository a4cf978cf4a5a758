'use strict';
// Lean's messages, within limits. Their text is the candidate's to influence; only their number and severity count.

const SEVERITIES = ['info', 'warning', 'error'];
const MAX_MESSAGES = 200;
const MAX_MESSAGE_CHARACTERS = 8192;
const MAX_TOTAL_CHARACTERS = 131072;

/** Lean.Message as Lean itself writes it in JSON. */
function asJson(objects, message) {
  const json = objects.fn.l_Lean_Message_toJson(objects.share(message)) >>> 0;
  return JSON.parse(objects.text(objects.fn.l_Lean_Json_compress(json) >>> 0));
}

/** Lean.Message: fields fileName, pos, endPos, caption, data; then keepFullRange and severity, one byte each. */
const severity = (objects, message) => SEVERITIES[objects.scalarByte(message, 1)];

/** All messages of a log, errors first in line when there is not room for all. */
function readMessages(objects, log) {
  const all = objects.elements(objects.fn.l_Lean_MessageLog_toArray(objects.share(log)) >>> 0);
  const errors = all.filter((message) => severity(objects, message) === 'error');
  const others = all.filter((message) => severity(objects, message) !== 'error');
  const kept = new Set([...errors, ...others].slice(0, MAX_MESSAGES));
  let truncated = kept.size < all.length;
  let room = MAX_TOTAL_CHARACTERS;
  const texts = new Map();
  for (const message of kept) {
    const { pos, endPos, data, kind } = asJson(objects, message);
    const limit = Math.min(room, MAX_MESSAGE_CHARACTERS);
    truncated ||= data.length > limit;
    texts.set(message, {
      severity: severity(objects, message), pos, endPos, data: cut(data, limit), kind: kind === '[anonymous]' ? null : kind,
    });
    room -= Math.min(data.length, limit);
  }
  return { messages: all.filter((m) => texts.has(m)).map((m) => texts.get(m)), truncated };
}

const hasErrors = ({ messages }) => messages.some((message) => message.severity === 'error');

/** Cut without leaving half of a surrogate pair. */
function cut(text, limit) {
  return text.length <= limit ? text : text.slice(0, limit).toWellFormed();
}

module.exports = { hasErrors, readMessages };
