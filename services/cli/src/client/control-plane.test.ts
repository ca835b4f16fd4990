import { describe, expect, it } from "@jest/globals";
import { run } from "../testing/run.ts";

describe("reachControlPlane()", () => {
  it.each(["--ca-file", "--tls-server-name"])("should refuse %s with clear text", async (flag) => {
    const answer = await run(["node", "list", "--server", "http://127.0.0.1:9", flag, "a"]);
    const text = `${flag} has no effect with http://127.0.0.1:9, which is clear text: use https://, or omit it\n`;
    expect(answer).toEqual({ code: 2, out: "", err: text });
  });
});
