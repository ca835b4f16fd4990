/** Letters, digits, "_" and "-" alone are what every server, client and shell takes as a part of a subject. */
const PLAIN = /^[A-Za-z0-9_-]+$/;
// NATS has no empty tokens, so an empty text needs a form that no other text has.
const EMPTY_TOKEN = "%";

/**
 * Make one token of a NATS subject from any text: each byte of its UTF-8 form that is not a letter, a digit, "_" or "-"
 * becomes "%" and two hexadecimal digits, as in URLs: "rack1.node.7" becomes "rack1%2Enode%2E7". The empty text becomes
 * "%".
 */
export function escapeToken(text: string): string {
  if (PLAIN.test(text)) return text;
  if (text === "") return EMPTY_TOKEN;
  let token = "";
  for (const byte of Buffer.from(text)) {
    const character = String.fromCharCode(byte);
    token += PLAIN.test(character) ? character : `%${toHex(byte)}`;
  }
  return token;
}

/**
 * The NATS subject of an event: `<prefix>.<type...>.<subject>`, for example
 * "rollcall.events.node.health.changed.web-1".
 */
export function eventSubject(prefix: string, event: { readonly type: string; readonly subject: string }): string {
  const type = event.type.split(".").map(escapeToken).join(".");
  return `${prefix}.${type}.${escapeToken(event.subject)}`;
}

/** The pattern of all subjects below a prefix. */
export function subjectsBelow(prefix: string): string {
  return `${prefix}.>`;
}

/** Tell whether each subject that `inner` matches is matched by `outer` too. Both may have wildcards. */
export function covers(outer: string, inner: string): boolean {
  const outerTokens = outer.split(".");
  const innerTokens = inner.split(".");
  for (const [at, token] of outerTokens.entries()) {
    const other = innerTokens[at];
    if (other === undefined) return false;
    if (token === ">") return true;
    if (other === ">" || (token !== "*" && token !== other)) return false;
  }
  return outerTokens.length === innerTokens.length;
}

function toHex(byte: number): string {
  return byte.toString(16).toUpperCase().padStart(2, "0");
}
