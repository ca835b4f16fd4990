import { readFileSync } from "node:fs";

/** The version of this program, for example "0.1.0". */
export function cliVersion(): string {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  const value: unknown = JSON.parse(text);
  const known = typeof value === "object" && value !== null && "version" in value;
  return known && typeof value.version === "string" ? value.version : "0.0.0";
}
