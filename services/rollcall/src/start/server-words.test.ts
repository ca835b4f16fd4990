import { describe, expect, it } from "@jest/globals";
import { SERVER_VERBS } from "../server-verbs.ts";
import { isForServers, SERVER_WORDS } from "./server-words.ts";

describe("isForServers()", () => {
  it("should recognize every server verb, wherever it appears", () => {
    const unknown = SERVER_VERBS.filter(({ name }) => !isForServers(["--server", "x", name, "--help"]));
    expect(unknown).toEqual([]);
    expect(isForServers(["help", "serve"])).toBe(true);
    expect(isForServers(["config", "list"])).toBe(true);
    expect(isForServers(["__complete", "node", ""])).toBe(true);
    expect(isForServers(["node", "list"])).toBe(false);
    expect(isForServers([])).toBe(false);
    expect(SERVER_WORDS.size).toBe(SERVER_VERBS.length + 3);
  });
});
