import { describe, expect, it } from "@jest/globals";
import { command, joinCommand, joinServer, listCommand, nodeCommand, tokenCommand } from "./cli-command.ts";
import { NO_FILTER } from "./nodes/node-filter.ts";

describe("command()", () => {
  it("should quote what a shell would interpret", () => {
    expect(command("node", "reject", "n1", "-m", "it's $(reboot)")).toBe(
      "rollcall node reject n1 -m 'it'\\''s $(reboot)'",
    );
    expect(command("node", "describe", "")).toBe("rollcall node describe ''");
  });
});

describe("nodeCommand()", () => {
  it("should name nodes and the reason", () => {
    expect(nodeCommand("cordon", ["a", "b"], "disk")).toBe("rollcall node cordon a b -m disk");
  });
});

describe("listCommand()", () => {
  it("should have every filter of a view, and its order", () => {
    const filter = {
      q: "H100  rack",
      type: ["compute"],
      approval: ["APPROVED"],
      health: ["UNKNOWN"],
      connection: ["CONNECTED"],
      scheduling: ["DRAINING", "DRAINED"],
      labels: "a in (b)",
    };
    expect(listCommand(filter, { by: "health", reversed: true })).toBe(
      "rollcall node list --labels 'a in (b)' --filter-approval approved --filter-status unknown " +
        "--filter-connection connected --filter-scheduling 'draining,drained' --filter-type compute " +
        "--search 'h100 rack' --order-by status --order-reversed",
    );
  });

  it("should leave out an order that the command line does not support", () => {
    expect(listCommand(NO_FILTER, { by: "labels", reversed: true }, ["reasons"])).toBe(
      "rollcall node list --show reasons",
    );
    expect(listCommand(NO_FILTER, { by: "id", reversed: true })).toBe("rollcall node list --order-reversed");
  });
});

describe("tokenCommand()", () => {
  it("should leave out what was not requested", () => {
    const none = { description: "", uses: "", ttl: "", namePattern: "", group: "", labels: [] };
    expect(tokenCommand({ ...none, preauthorized: false, ephemeral: false })).toBe("rollcall token create");
    expect(
      tokenCommand({ ...none, namePattern: "gpu-*", labels: ["z=a"], preauthorized: true, ephemeral: false }),
    ).toBe("rollcall token create --name-pattern 'gpu-*' --label z=a --preauthorized");
  });
});

describe("joinCommand()", () => {
  it("should keep the token out of the arguments of the agent", () => {
    expect(joinCommand("shell", "https://host:7700", "rj_1")).toBe(
      "ROLLCALL_JOIN_TOKEN=rj_1 rollcall agent --server https://host:7700",
    );
  });
});

describe("joinServer()", () => {
  it.each([
    ["https://rollcall.example.org/join", "https://rollcall.example.org", false],
    ["https://rollcall.example.org:7700/join", "https://rollcall.example.org:7700", false],
    ["https://localhost.example.org/join", "https://localhost.example.org", false],
    ["http://127.0.0.1.example.org/join", "http://127.0.0.1.example.org", false],
    ["http://127.0.0.1:7700/join", "http://127.0.0.1:7700", true],
    ["http://localhost:7700/join", "http://localhost:7700", true],
    ["https://[::1]:7700/join", "https://[::1]:7700", true],
    ["https://[2001:db8::1]/join", "https://[2001:db8::1]", false],
  ])("should keep the scheme of %s, and know a loopback address", (page, server, isLoopback) => {
    expect(joinServer(new URL(page))).toEqual({ server, isLoopback });
  });
});
