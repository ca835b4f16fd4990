import { spawnSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { needs } from "@rollcall/testkit/needs";
import { builtLauncher, npmLauncher, runInto } from "./testing/rollcall-process.ts";
import { createUpFixture, type UpFixture, WITHOUT_WORK } from "./testing/up-fixture.ts";

const FULL = "cannot write /dev/full (standard output): no space left on device\n";
const CLOSED = "cannot write standard output: its reader has closed the pipe\n";
const CLOSED_OUTPUT = "cannot write standard output: it is closed; redirect it to /dev/null to discard the output\n";
/** Limit files to 1 KiB. Ignore SIGXFSZ, which would end the process before it could report the reason. */
const SMALL_FILES = ["sh", "-c", "trap '' XFSZ; ulimit -f 2; exec \"$@\"", "sh"];
const SETPRIV = "setpriv";
const NOBODY = [SETPRIV, "--reuid=65534", "--regid=65534", "--clear-groups"];

const { PATH } = process.env;

let fixture: UpFixture;
let folder: string;
let env: Readonly<Record<string, string>>;

beforeAll(async () => {
  fixture = await createUpFixture();
  await fixture.up(...WITHOUT_WORK);
  folder = join(dirname(fixture.dataDirectory), "files");
  mkdirSync(folder);
  env = {
    ROLLCALL_SERVER: fixture.server,
    ROLLCALL_TOKEN_FILE: join(fixture.dataDirectory, "admin-token"),
    ROLLCALL_DATA_DIR: fixture.dataDirectory,
  };
  // Create the audit entries and the object that the commands below print.
  for (const words of [
    "token create --description x",
    "policy set --default --heartbeat-interval 600ms",
    "access create x --role viewer",
  ]) {
    expect(await into("/dev/null", words)).toMatchObject({ code: 0 });
  }
});

afterAll(() => fixture.dispose());

const wordsOf = (words: string) => words.replace("FOLDER", folder).split(" ");

/** Run a command with standard output redirected to a device or a new file. */
async function into(path: string, words: string, within: readonly string[] = []) {
  const out = openSync(path, "w");
  return runInto(out, wordsOf(words), { env, within }).finally(() => closeSync(out));
}

const COMMANDS = [
  ...["audit export", "backup FOLDER", "config default", "config list", "node list", "node list -o json", "events"],
  ...[
    "events --follow",
    "node watch",
    "export",
    "completion bash",
    "version",
    "--help",
    "help node",
    "node list --help",
  ],
  "__complete node",
];

describe("output that cannot be written", () => {
  it.each(COMMANDS)("should end a command on a full device with the cause: %s", async (words) => {
    const { code, err } = await into("/dev/full", words);
    expect([code, err]).toEqual([1, FULL]);
  });

  it.each(COMMANDS)("should end a command whose pipe is closed with the cause: %s", async (words) => {
    const { code, err } = await runInto("closed pipe", wordsOf(words), { env });
    expect([code, err]).toEqual([1, CLOSED]);
  });

  it("should not be reported as written if only its beginning fits", async () => {
    const file = join(folder, "default.yaml");
    const { code, err } = await into(file, "config default", SMALL_FILES);
    expect([code, err]).toEqual([1, `cannot write ${file} (standard output): file too large\n`]);
    expect(statSync(file).size).toBe(1_024);
  });

  it("should not be reported as exported", async () => {
    const file = join(folder, "audit.jsonl");
    const { code, err } = await into(file, "audit export", SMALL_FILES);
    const whole = await into(join(folder, "whole.jsonl"), "audit export");
    expect(whole).toMatchObject({ code: 0, err: expect.stringMatching(/^exported \d+ entries, through \d+:/) });
    expect(statSync(join(folder, "whole.jsonl")).size).toBeGreaterThan(1_024);
    expect([code, err]).toEqual([1, `cannot write ${file} (standard output): file too large\n`]);
  });
});

describe.each([
  ["bin/rollcall", builtLauncher],
  ["the npm package", npmLauncher],
] as const)("closed standard output with %s", (name, layOut) => {
  const nowhere = openSync("/dev/null", "w");
  let launcher: string;
  beforeAll(() => {
    launcher = layOut(join(folder, name));
  });
  afterAll(() => closeSync(nowhere));
  const redirected = (words: string, how: string) =>
    runInto(nowhere, wordsOf(words), {
      env: { ...env, PATH: `${dirname(launcher)}:${PATH}` },
      launcher,
      within: ["sh", "-c", `exec "$@" ${how}`, "sh"],
    });

  it.each([...COMMANDS, "job list", "whoami", "up --help"])(
    "should end a command with one sentence: %s",
    async (words) => {
      expect(await redirected(words, ">&-")).toEqual({ code: 1, err: CLOSED_OUTPUT });
    },
  );

  it.each([
    ["run --detach --queue-timeout 1h -- true", 75],
    ["audit verify", 3],
  ])("should end a command with its own code for that: %s", async (words, code) => {
    expect(await redirected(words, ">&-")).toEqual({ code, err: CLOSED_OUTPUT });
  });

  it.each(["2>&-", "<&-", "<&- 2>&-"])("should not be confused with other descriptors: %s", async (how) => {
    expect(await redirected("node list", how)).toEqual({ code: 0, err: "" });
  });
});

describe("backup", () => {
  const nowhere = openSync("/dev/null", "w");
  afterAll(() => closeSync(nowhere));
  const backup = (path: string, within: readonly string[] = []) => runInto(nowhere, ["backup", path], { env, within });

  it("should leave nothing behind if the disk is full, and say so", async () => {
    const path = join(folder, "large.backup");
    expect(await backup(path, SMALL_FILES)).toEqual({ code: 1, err: `cannot write ${path}: file too large\n` });
    expect(readdirSync(folder).filter((name) => name.startsWith("large"))).toEqual([]);
  });

  it("should keep the existing archive", async () => {
    const path = join(folder, "kept.backup");
    expect(await backup(path)).toEqual({ code: 0, err: "" });
    const before = readFileSync(path);
    expect((await backup(path, SMALL_FILES)).code).toBe(1);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it.each([
    ["/dev/null", "it is not a regular file"],
    ["/proc/rollcall.backup", "no such file or directory"],
    ["/proc/version/rollcall.backup", "not a directory"],
  ])("should refuse files that cannot be archives: %s", async (path, why) => {
    expect(await backup(path)).toEqual({ code: 1, err: `cannot write ${path}: ${why}\n` });
    expect(statSync("/dev/null").isCharacterDevice()).toBe(true);
  });
});

const canBecomeNobody =
  process.getuid?.() === 0 && spawnSync(SETPRIV, [...NOBODY.slice(1), process.execPath, "--version"]).status === 0;

needs("to run as root, and setpriv", canBecomeNobody).describe("a directory of another user", () => {
  const nowhere = openSync("/dev/null", "w");
  afterAll(() => closeSync(nowhere));
  const asNobody = (words: string, more: Readonly<Record<string, string>> = {}) =>
    runInto(nowhere, wordsOf(words), { env: { ...env, HOME: "/nonexistent", ...more }, within: NOBODY });

  it.each([
    [
      "node list",
      /^cannot read \S+run\.json: permission denied; run this as the owner of that data directory[^\n]*\n$/,
    ],
    ["whoami", /^cannot read \S+run\.json: permission denied; [^\n]*\n$/],
    ["backup /tmp/x.backup", /^the data directory \S+ cannot be used: [^\n]*permission denied[^\n]*\n$/],
    ["restore /etc/shadow", /^cannot read \/etc\/shadow: permission denied\n$/],
    ["backup verify /etc/shadow", /^cannot read \/etc\/shadow: permission denied\n$/],
    ["config list --config /etc/shadow", /^[^\n]*\/etc\/shadow[^\n]*permission denied[^\n]*\n$/],
  ])("should be one sentence for %s", async (words, sentence) => {
    chmodSync(dirname(fixture.dataDirectory), 0o711);
    const { code, err } = await asNobody(words);
    expect(err).toMatch(sentence);
    expect(code).not.toBe(0);
  });

  it("should be one sentence for files, and leave no file behind", async () => {
    rmSync(join(folder, "home"), { recursive: true, force: true });
    mkdirSync(join(folder, "home"), { mode: 0o755 });
    const home = { XDG_CONFIG_HOME: join(folder, "home"), ROLLCALL_DATA_DIR: "/nonexistent" };
    const token = readFileSync(env.ROLLCALL_TOKEN_FILE ?? "", "utf8").trim();
    const { code, err } = await asNobody(`login --server ${fixture.server} --token ${token} --context x`, {
      ...home,
      ROLLCALL_TOKEN_FILE: "",
    });
    expect([code, err]).toEqual([1, `cannot write ${folder}/home/rollcall/config.yaml: permission denied\n`]);
    expect(existsSync(join(folder, "home", "rollcall"))).toBe(false);
    const archive = await asNobody(`backup ${folder}/home/x.backup`, { ...home, DATABASE_URL: "" });
    expect(archive.err).not.toMatch(/\n +at /);
  });
});
