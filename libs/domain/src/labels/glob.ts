/**
 * Tell whether a whole text matches a pattern in which "*" stands for any characters, none included, and "?" for
 * exactly one. The time it takes grows with the product of both lengths, whatever the pattern.
 */
export function matchesGlob(pattern: string, text: string): boolean {
  let at = 0;
  let position = 0;
  // Where to go on when what follows the last "*" does not match: that star takes one character more.
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
