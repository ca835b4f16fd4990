import { describe, expect, it } from "@jest/globals";
import { LightHeaders } from "./light-headers.ts";

const INITS = [
  undefined,
  { "Content-Type": "application/proto", B: " padded " },
  [
    ["b", "1"],
    ["A", "2"],
    ["B", "3"],
    ["Set-Cookie", "x=1, y"],
    ["set-cookie", "z=2"],
  ] as [string, string][],
  new Headers({ copied: "yes" }),
];

describe("Headers of the command line and of agents", () => {
  it.each(INITS)("should be like those of Node.js, made of %j", (init) => {
    const said = (headers: Headers | LightHeaders) => {
      headers.append("Later", "one");
      headers.append("later", "two");
      headers.set("REPLACED", "first");
      headers.set("replaced", "second");
      headers.append("gone", "x");
      headers.delete("Gone");
      const each: string[] = [];
      headers.forEach((value, name) => void each.push(`${name}=${value}`));
      return {
        all: [...headers],
        names: [...headers.keys()],
        values: [...headers.values()],
        each,
        cookies: headers.getSetCookie(),
        has: [headers.has("LATER"), headers.has("gone")],
        got: [headers.get("Later"), headers.get("b"), headers.get("gone")],
      };
    };
    expect(said(new LightHeaders(init))).toEqual(said(new Headers(init)));
  });
});
