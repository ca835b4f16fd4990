import { describe, expect, it } from "@jest/globals";
import { Failure } from "../failure.ts";
import type { ListedSetting } from "../parts.ts";
import { lines, run } from "../testing/run.ts";

const SETTING: ListedSetting = {
  path: "Orchestrator.NodeManager.DisconnectTimeout",
  value: "30s",
  default: "1m",
  source: "rollcall.yaml:3",
  alias: "HEARTBEAT_TIMEOUT",
  aliases: ["HEARTBEAT_TIMEOUT", "NodeDisconnectedAfter"],
  environment: "ROLLCALL_ORCHESTRATOR_NODEMANAGER_DISCONNECTTIMEOUT",
  flag: undefined,
  doc: "How long a node may be silent.",
};

function config(
  line: string,
  list = async (_file: string | undefined): Promise<readonly ListedSetting[]> => [SETTING],
  problems: readonly string[] = [],
) {
  const listed = async (file: string | undefined) => ({ settings: await list(file), problems });
  const configuration = { list: listed, defaultYaml: async () => "Log:\n  Level: info\n" };
  return run(line.split(" "), { parts: { configuration } });
}

describe("config list", () => {
  it("should print keys with values, sources and the alias that was used", async () => {
    expect(await config("config list")).toEqual({
      code: 0,
      err: "",
      out: lines(
        "KEY                                         VALUE  SOURCE",
        "Orchestrator.NodeManager.DisconnectTimeout  30s    rollcall.yaml:3, as HEARTBEAT_TIMEOUT",
      ),
    });
  });

  it("should print everything as JSON", async () => {
    const { out } = await config("config list --output json");
    expect(JSON.parse(out)).toEqual([
      {
        key: "Orchestrator.NodeManager.DisconnectTimeout",
        value: "30s",
        default: "1m",
        source: "rollcall.yaml:3",
        aliases: ["HEARTBEAT_TIMEOUT", "NodeDisconnectedAfter"],
        environment: "ROLLCALL_ORCHESTRATOR_NODEMANAGER_DISCONNECTTIMEOUT",
        alias: "HEARTBEAT_TIMEOUT",
        flag: null,
        description: "How long a node may be silent.",
      },
    ]);
  });

  it("should hand on the file, and tell what is wrong with it", async () => {
    const answer = await config("config list --config bad.yaml", async (file) => {
      throw new Failure(`${file}:2: unknown key Foo`);
    });
    expect(answer).toEqual({ code: 1, out: "", err: "bad.yaml:2: unknown key Foo\n" });
  });
});

describe("config list of values that contradict each other", () => {
  it("should print them, say so, and fail", async () => {
    const answer = await config("config list", undefined, ["rollcall.yaml:3: TLS.KeyFile: no"]);
    expect(answer.code).toBe(1);
    expect(answer.out).toContain("DisconnectTimeout  30s");
    expect(answer.err).toBe(
      lines(
        "these values do not go together, and what needs them would not start:",
        "rollcall.yaml:3: TLS.KeyFile: no",
      ),
    );
  });
});

describe("config default", () => {
  it("should print the file", async () => {
    expect((await config("config default")).out).toBe("Log:\n  Level: info\n");
  });
});
