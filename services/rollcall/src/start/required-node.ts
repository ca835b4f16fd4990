/** The oldest supported Node.js, as in package.json. Servers use functions that this version introduced. */
const OLDEST: readonly [major: number, minor: number] = [22, 15];

/** Explains why a version of Node.js cannot run the program; null when it can. */
export function nodeProblem(version: string): string | null {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isSupported = major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
  return isSupported ? null : `rollcall needs Node.js ${OLDEST.join(".")} or later, and this is ${version}`;
}
