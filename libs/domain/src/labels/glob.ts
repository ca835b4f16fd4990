/**
 * Whether a whole string matches a pattern: "*" stands for any number of characters, including none, and "?"
 * for exactly one. The time is at most proportional to the product of both lengths, whatever the pattern.
 */
export function matchesGlob(pattern: string, text: string): boolean {
  let at = 0;
  let position = 0;
  // The position of the last "*". If the pattern after it does not match, continue from this position, with
  // the star matching one more character.
  let star = -1;
  let taken = 0;
  while (position < text.length) {
    const wanted = pattern[at];
    if (wanted === "*") {
      star = at;
      taken = position;
      at += 1;
    } else if (wanted === "?" || wanted === text[position]) {
      at += 1;
      position += 1;
    } else if (star >= 0) {
      at = star + 1;
      taken += 1;
      position = taken;
    } else {
      return false;
    }
  }
  while (pattern[at] === "*") at += 1;
  return at === pattern.length;
}
