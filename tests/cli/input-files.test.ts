import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { createConfigurationView } from "../../services/rollcall/src/config/configuration-view.ts";
import { createTestShell } from "../../services/rollcall/src/testing/run-client.ts";
import {
  attempt,
  attemptServer,
  OF_CLIENTS,
  OF_SERVERS,
  RIGHT_WORDS,
  UNDONE,
  useCommandFiles,
} from "./support/command-words.ts";

const files = useCommandFiles();
beforeAll(() => {
  mkdirSync(join(files.folder, "directory"));
  mkdirSync(join(files.folder, "directory.yaml"));
  writeFileSync(join(files.folder, "wrong.yaml"), "name: [");
  writeFileSync(join(files.folder, "brackets.yaml"), `name: ${"[".repeat(20_000)}${"]".repeat(20_000)}`);
  writeFileSync(join(files.folder, "items.yaml"), `${"- ".repeat(20_000)}x`);
  writeFileSync(join(files.folder, "maps.json"), `${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`);
  writeFileSync(join(files.folder, "empty"), "");
  mkdirSync(join(files.folder, "broken/rollcall/config.yaml"), { recursive: true });
  mkdirSync(join(files.folder, "tokens/rollcall"), { recursive: true });
  const context = "{server: 'http://127.0.0.1:1', token_file: /nowhere/token}";
  writeFileSync(join(files.folder, "tokens/rollcall/config.yaml"), `{current_context: x, contexts: {x: ${context}}}`);
});

function run(line: string, env: Readonly<Record<string, string>> = {}) {
  const { folder } = files;
  const configuration = createConfigurationView(createTestShell({ env, cwd: folder }));
  return attempt(folder, line.split(" "), { env, parts: { configuration } });
}

/** Commands that send nothing, so they need neither a token nor an authority. */
const SEND_NOTHING = /^(config|context) |^(version|completion|logout|options)$/;
const SENDING = OF_CLIENTS.filter((words) => !SEND_NOTHING.test(words));

/** Create a command line with valid arguments, but without a token. */
const lineOf = (words: string, ...more: readonly string[]) =>
  [words, ...more, words === "login" ? "" : (RIGHT_WORDS[words] ?? "")].join(" ").trim();

describe("an input file of a command", () => {
  const READING = [
    "job run FILE",
    "apply -f FILE",
    "apply --dry-run -f FILE",
    "diff -f FILE",
    "policy set -f FILE",
    "policy preview -f FILE",
    "config convert FILE",
    "config list --config FILE",
    "doctor --certificate FILE",
  ];

  it.each(READING)("should be wrong usage if it is missing: %s", async (line) => {
    const { code, out, err } = await run(line.replace("FILE", "missing.yaml"));
    expect({ code, out, err }).toEqual({
      code: 2,
      out: "",
      err: expect.stringMatching(
        /^cannot read (the configuration file )?\S*missing\.yaml: no such file or directory\n$/,
      ),
    });
  });

  // `apply` and `diff` also read directories.
  it.each(READING.filter((line) => !/apply|diff/.test(line)))(
    "should be wrong usage where it is unreadable: %s",
    async (line) => {
      const { code, out, err } = await run(line.replace("FILE", "directory"));
      expect({ code, out, err }).toEqual({
        code: 2,
        out: "",
        err: expect.stringMatching(/^cannot read .*directory: illegal operation on a directory\n$/),
      });
    },
  );

  it.each(READING)("should be wrong usage if it is invalid: %s", async (line) => {
    const { code, out, err } = await run(line.replace("FILE", "wrong.yaml"));
    expect({ code, out, err }).toEqual({ code: 2, out: "", err: expect.stringMatching(/wrong\.yaml/) });
  });

  it.each(
    READING.filter((line) => !line.startsWith("doctor")).flatMap((line) =>
      ["brackets.yaml", "items.yaml", "maps.json"].map((file) => line.replace("FILE", file)),
    ),
  )("should be wrong usage where it is nested too deeply: %s", async (line) => {
    const { code, out, err } = await run(line);
    expect({ code, out, err }).toEqual({
      code: 2,
      out: "",
      err: expect.stringMatching(/(brackets|items|maps)\.(yaml|json).*: values are nested more than 100 levels deep\n/),
    });
  });

  it("should be wrong usage if the environment names it", async () => {
    const { code, err } = await run("config list", { ROLLCALL_CONFIG: "missing.yaml" });
    expect([code, err]).toEqual([2, "cannot read the configuration file missing.yaml: no such file or directory\n"]);
  });
});

describe("the access token's file", () => {
  it.each(SENDING)("should be wrong usage if it is missing: %s", async (words) => {
    const { code, out, err } = await run(lineOf(words, "--token-file", "missing"));
    expect({ code, out, err }).toEqual({
      code: 2,
      out: "",
      err: expect.stringMatching(/^cannot read the access token in .*\/missing: no such file or directory\n$/),
    });
  });

  it.each(["diff", "run", "doctor", "audit verify", "node list"])(
    "should be wrong usage where it is empty, unreadable, or named elsewhere: %s",
    async (words) => {
      expect((await run(lineOf(words, "--token-file", "empty"))).code).toBe(2);
      expect((await run(lineOf(words, "--token-file", "directory"))).code).toBe(2);
      const env = { ROLLCALL_TOKEN: "", ROLLCALL_TOKEN_FILE: "missing" };
      expect((await run(lineOf(words), env)).code).toBe(2);
      const context = { ROLLCALL_TOKEN: "", ROLLCALL_SERVER: "", XDG_CONFIG_HOME: join(files.folder, "tokens") };
      expect((await run(lineOf(words), context)).code).toBe(2);
    },
  );
});

describe("files of TLS", () => {
  it.each(SENDING)("should be wrong usage if the authority is missing: %s", async (words) => {
    const tls = ["--server", "https://127.0.0.1:1", "--ca-file", "missing.pem"];
    const { code, out, err } = await run(lineOf(words, ...tls));
    expect({ code, out, err }).toEqual({
      code: 2,
      out: "",
      err: expect.stringMatching(/^cannot read \S+\/missing\.pem: no such file or directory\n$/),
    });
  });

  it.each(SENDING)("should be wrong usage if the authority is no certificate: %s", async (words) => {
    for (const name of ["empty", "wrong.yaml"]) {
      const { code, out, err } = await run(lineOf(words, "--server", "https://127.0.0.1:1", "--ca-file", name));
      expect({ code, out, err: err.replace(/^\S+\//, "") }).toEqual({
        ...{ code: 2, out: "" },
        err: `${name}: contains no PEM certificate\n`,
      });
    }
  });

  it("should be wrong usage if the client's own certificate cannot be used", async () => {
    const env = { ROLLCALL_CLIENT_CERT: "empty", ROLLCALL_CLIENT_KEY: "empty" };
    const { code, out, err } = await run("node list", env);
    expect({ code, out, err }).toEqual({
      ...{ code: 2, out: "" },
      err: expect.stringMatching(/^\S+\/empty: contains no PEM certificate\n$/),
    });
  });

  it("should be wrong usage if the client's own certificate is missing", async () => {
    const env = { ROLLCALL_CLIENT_CERT: "missing.pem", ROLLCALL_CLIENT_KEY: "missing.key" };
    expect(await run("node list", env)).toMatchObject({ code: 2, out: "" });
  });
});

describe("an input file of a server's verb", () => {
  // Skip the demo, because it has no settings.
  const WITH_CONFIGURATION = OF_SERVERS.filter((name) => name !== "demo");
  const wordsOf = (name: string) => (name === "serve" ? ["admin"] : name === "restore" ? ["empty"] : []);

  it.each(WITH_CONFIGURATION)("should be wrong usage if the configuration file is missing: %s", async (name) => {
    const { exits, err } = await attemptServer(name, [...wordsOf(name), "--config", "missing.yaml"], files.folder);
    expect(exits).toEqual([2]);
    expect(err).toBe("cannot read the configuration file missing.yaml: no such file or directory\n");
  });

  it.each(WITH_CONFIGURATION)("should be wrong usage if the configuration is invalid: %s", async (name) => {
    const { exits, err } = await attemptServer(name, [...wordsOf(name), "--config", "wrong.yaml"], files.folder);
    expect(exits).toEqual([2]);
    expect(err).toMatch(/^invalid configuration:\nwrong\.yaml:1: /);
  });

  it("should be wrong usage if the configuration is nested too deeply", async () => {
    const { exits, err } = await attemptServer("up", ["--config", "brackets.yaml"], files.folder);
    expect({ exits, err }).toEqual({ exits: [2], err: expect.stringContaining("nested more than 100 levels deep") });
  });

  it.each([
    [["restore", "missing"], /^cannot read \S+\/missing: no such file or directory\n$/],
    [["restore", "directory"], /^cannot read \S+\/directory: illegal operation on a directory\n$/],
    [["backup", "verify", "missing"], /^cannot read \S+\/missing: no such file or directory\n$/],
    [["backup", "verify", "directory"], /^cannot read \S+\/directory: illegal operation on a directory\n$/],
    [["backup", "x", "--passphrase-file", "missing"], /^cannot read the passphrase in \S+\/missing: no such file/],
    [["restore", "empty", "--passphrase-file", "empty"], /^the first line of empty contains no passphrase\n$/],
  ] as const)("should be wrong usage where it cannot be used: %s", async ([name, ...words], text) => {
    const { exits, err } = await attemptServer(name, words, files.folder);
    expect(exits).toEqual([2]);
    expect(err).toMatch(text);
  });

  it("should not replace an archive unless told so", async () => {
    const { exits, err } = await attemptServer("backup", ["empty"], files.folder);
    const text = `${join(files.folder, "empty")} exists: use another name, or --force to replace it\n`;
    expect({ exits, err }).toEqual({ exits: [1], err: text });
    expect((await attemptServer("backup", ["empty", "--force"], files.folder)).err).not.toContain("exists:");
  });

  it.each([
    ["restore", "empty"],
    ["backup", "verify", "empty"],
  ])("should be a failure where it can be read, and is not whole: %s", async (name, ...words) => {
    expect(await attemptServer(name, words, files.folder)).toMatchObject({ exits: [1] });
  });
});

describe("the file of contexts, which Rollcall keeps", () => {
  it("should be a failure if it is nested too deeply", async () => {
    mkdirSync(join(files.folder, "nested/rollcall"), { recursive: true });
    copyFileSync(join(files.folder, "brackets.yaml"), join(files.folder, "nested/rollcall/config.yaml"));
    const { code, err } = await run("context list", { XDG_CONFIG_HOME: join(files.folder, "nested") });
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining("nested more than 100 levels deep\n") });
  });

  it.each(SENDING)("should be a failure if it is unreadable: %s", async (words) => {
    const env = { XDG_CONFIG_HOME: join(files.folder, "broken") };
    const { code, out, err } = await run(lineOf(words), env);
    expect({ code, out, err }).toEqual({
      code: UNDONE[words] ?? 1,
      out: "",
      err: expect.stringMatching(/^cannot read \S+config\.yaml: illegal operation on a directory\n$/),
    });
  });
});
