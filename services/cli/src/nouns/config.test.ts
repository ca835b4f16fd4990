import { describe, expect, it } from "@jest/globals";
import { UsageError } from "../failure.ts";
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

const CONVERTED = {
  path: "Compute.Server",
  written: "o:7700",
  where: "b.yaml:3",
  from: "Compute.Orchestrators",
  note: "the agent registers there",
};
const ASIDE = { path: "WebUI", where: "b.yaml:9", why: "there is none" };

function config(
  line: string,
  list = async (_file: string | undefined): Promise<readonly ListedSetting[]> => [SETTING],
  problems: readonly string[] = [],
  warnings: readonly string[] = [],
) {
  const configuration = {
    list: async (file: string | undefined) => ({ settings: await list(file), problems, warnings }),
    defaultYaml: async () => "Log:\n  Level: info\n",
    convert: async (file: string) => {
      if (file !== "b.yaml") throw new UsageError(`cannot read the configuration file ${file}`);
      return { settings: [CONVERTED], leftAside: [ASIDE], yaml: "Compute:\n  Server: o:7700\n" };
    },
  };
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

  it("should read the file that the flag names, and report every problem in it", async () => {
    const answer = await config("config list --config bad.yaml", async (file) => {
      throw new UsageError(`${file}:2: unknown key Foo\n${file}:3: unknown key Bar`);
    });
    const err = "bad.yaml:2: unknown key Foo\nbad.yaml:3: unknown key Bar\n";
    expect(answer).toEqual({ code: 2, out: "", err });
  });
});

describe("config list of values that contradict each other", () => {
  it("should print the values, report the contradiction, and fail", async () => {
    const answer = await config("config list", undefined, ["rollcall.yaml:3: TLS.KeyFile: no"]);
    expect(answer.code).toBe(1);
    expect(answer.out).toContain("DisconnectTimeout  30s");
    expect(answer.err).toBe(
      lines(
        "these values contradict each other; processes that need them would not start:",
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

describe("config list of a file with keys of another program", () => {
  it("should warn about them once, next to the listing", async () => {
    const answer = await config("config list", undefined, [], ["b.yaml: keys of another program"]);
    expect(answer.code).toBe(0);
    expect(answer.err).toBe("warning: b.yaml: keys of another program\n");
  });
});

describe("config convert", () => {
  it("should print the file with Rollcall's keys", async () => {
    const { code, out, err } = await config("config convert b.yaml");
    expect({ code, out, err }).toEqual({ code: 0, out: "Compute:\n  Server: o:7700\n", err: "" });
  });

  it("should print everything as JSON", async () => {
    const { out } = await config("config convert b.yaml --output json");
    expect(JSON.parse(out)).toEqual({
      settings: [
        {
          key: "Compute.Server",
          value: "o:7700",
          source: "b.yaml:3",
          alias: "Compute.Orchestrators",
          note: "the agent registers there",
        },
      ],
      leftAside: [{ key: "WebUI", source: "b.yaml:9", why: "there is none" }],
    });
  });

  it.each([
    ["config convert gone.yaml", 2, "cannot read the configuration file gone.yaml"],
    ["config convert", 2, "missing required argument 'file'"],
    ["config convert b.yaml --output csv", 2, "should be one of"],
  ])("should fail %s with %i", async (line, code, message) => {
    const answer = await config(line);
    expect(answer).toMatchObject({ code, out: "" });
    expect(answer.err).toContain(message);
  });

  it("should explain its exit codes in its help", async () => {
    const { code, out } = await config("config convert --help");
    expect(code).toBe(0);
    expect(out).toContain("Exit codes: 0");
  });
});
