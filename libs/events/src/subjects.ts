/** Letters, digits, "_" and "-", which every server, client and shell accepts in a subject token. */
const PLAIN = /^[A-Za-z0-9_-]+$/;
// The encoding of the empty string, because NATS has no empty tokens. No other string is encoded like this.
const EMPTY_TOKEN = "%";

/**
 * Encode any string as one token of a NATS subject. As in URLs, each byte of its UTF-8 form that is not a letter, a
 * digit, "_" or "-" becomes "%" and two hexadecimal digits: "rack1.node.7" becomes "rack1%2Enode%2E7". The empty
 * string becomes "%".
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

/** The wildcard pattern for all subjects below a prefix. */
export function subjectsBelow(prefix: string): string {
  return `${prefix}.>`;
}

/** Whether `outer` matches every subject that `inner` matches. Both can contain wildcards. */
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
