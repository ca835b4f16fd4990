import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { needs } from "../libs/testkit/src/jest/needs.ts";
import { until } from "../libs/testkit/src/until.ts";
import { createUpFixture, type UpFixture } from "../services/rollcall/src/testing/up-fixture.ts";
import { layOutCheckout } from "./support/checkout.ts";
import {
  createJoiningMachine,
  isInstalledHere,
  type JoiningMachine,
  makeAgentPackages,
  type ScriptEnd,
} from "./support/joining-machine.ts";
import { workspaceRoot } from "./support/workspace.ts";

const SCRIPT = join(workspaceRoot, "deploy/package/join.sh");
const START_LIMIT_MS = 120_000;
const JOIN_LIMIT_MS = 120_000;

describe("join.sh", () => {
  it.each([["dash"], ["busybox", "sh"], ["bash", "--posix"]])("should be valid for %s", (shell, ...words) => {
    if (isInstalledHere(shell)) execFileSync(shell, [...words, "-n", SCRIPT]);
  });

  needs("shellcheck", isInstalledHere("shellcheck")).it("should have no finding of shellcheck", () => {
    execFileSync("shellcheck", [SCRIPT]);
  });
});

// Runs the printed line against a real control plane, on a machine whose root is a directory.
describe("the line that `rollcall token create` prints", () => {
  let fixture: UpFixture;
  let checkout: string;
  let packages: string;
  let names: { readonly deb: string; readonly tarball: string };
  let machine: JoiningMachine;

  beforeAll(async () => {
    fixture = await createUpFixture();
    checkout = layOutCheckout(fixture.dataDirectory);
    packages = mkdtempSync(join(tmpdir(), "rollcall-join-packages-"));
    names = makeAgentPackages(packages, join(checkout, "bin/rollcall"));
    await fixture.up("--tls", "--join-tokens=strict", "--no-agent", "--set", `Join.PackagesDir=${packages}`);
  }, START_LIMIT_MS);
  afterAll(async () => {
    await fixture.dispose();
    for (const path of [checkout, packages]) rmSync(path, { recursive: true, force: true });
  }, START_LIMIT_MS);
  beforeEach(() => {
    machine = createJoiningMachine();
  });
  afterEach(() => machine.dispose());

  const rollcall = (...words: readonly string[]) =>
    promisify(execFile)(join(checkout, "bin/rollcall"), words, {
      env: { ...process.env, ROLLCALL_DATA_DIR: fixture.dataDirectory },
    });

  /** Create a token. Returns it with the line, which reads the token from the environment. */
  async function create(...words: readonly string[]) {
    const { stdout, stderr } = await rollcall("token", "create", ...words);
    const token = stdout.trim();
    const [, line = ""] = /On the machine:\n\n {2}(.*)\n/.exec(stderr) ?? [];
    return { token, id: token.split("_")[2] ?? "", line: line.replace("=TOKEN", `=${token}`) };
  }

  const isHealthy = (name: string) =>
    until(`${name} to be healthy`, async () =>
      new RegExp(`^${name} .* healthy `, "m").test((await rollcall("node", "list")).stdout),
    );

  /** Expect one line on standard error, and a machine without any trace. */
  function expectUndone(before: readonly string[], { code, err }: ScriptEnd, message: RegExp | string): void {
    expect(err).toMatch(message);
    expect(err.trimEnd().split("\n")).toHaveLength(1);
    expect(code).not.toBe(0);
    expect(machine.files()).toEqual(before);
  }

  it("should pin the key before it runs anything", async () => {
    const { line, token } = await create();
    expect(line).toMatch(/^s=\$\(curl -fsS -k --pinnedpubkey '?sha256\/\/\S+ https:\/\/\S+\/join\.sh\) && /);
    const before = machine.files();
    const other = line.replace(/(pinnedpubkey '?sha256\/\/).{4}/, "$1AAAA");
    const { code, err } = await machine.run(other);
    expect([code, err]).toEqual([90, expect.stringContaining("public key does not match")]);
    expect(machine.files()).toEqual(before);
    expect(machine.started()).not.toContain(token);
  });

  it.each([
    ["a tarball", false],
    ["a package for Debian", true],
  ])(
    "should install %s, join, and keep the token out of arguments, environments and files",
    async (_, isDebian) => {
      machine.dispose();
      machine = createJoiningMachine({ isDebian });
      const name = isDebian ? "debian" : "tarball";
      const { line, token } = await create("--label", "zone=a");
      const end = await machine.run(`${line} --name ${name}`);
      expect(end).toMatchObject({ code: 0, err: "" });
      expect(end.out).toBe(
        `join.sh: installing ${isDebian ? names.deb : names.tarball}\n` +
          `join.sh: ${name} has joined https://${fixture.server}; \`rollcall node list\` shows it\n`,
      );
      await isHealthy(name);
      expect((await rollcall("node", "describe", name)).stdout).toMatch(/zone=a/);

      const config = machine.read("etc/rollcall/agent.yaml");
      expect(config).toContain(`\nCompute.Server: https://${fixture.server}\nCompute.Name: ${name}\n`);
      expect(config).toMatch(/\nCompute\.TLS\.CAFingerprint: sha256:[0-9a-f]{64}\n$/);
      const unit = isDebian ? "usr/lib/systemd/system" : "etc/systemd/system";
      const program = isDebian ? "/usr/bin/rollcall" : "/usr/local/bin/rollcall";
      expect(machine.read(`${unit}/rollcall-agent.service`)).toContain(`\nExecStart=${program} agent --config`);
      expect(machine.started()).toContain("systemctl enable rollcall-agent.service");
      expect(machine.started()).not.toContain(token);
      expect(machine.files().join("\n")).not.toContain(token);

      // Again: nothing happens, whether or not the token is still valid.
      const before = machine.files();
      const again = await machine.run(`${line} --name ${name}`);
      expect(again).toEqual({
        code: 0,
        out: `join.sh: this machine has already joined https://${fixture.server}; nothing was changed\n`,
        err: "",
      });
      const moved = await machine.run(`${(await create()).line} --server https://other.example:7700`);
      expectUndone(before, moved, /belongs to https:\/\/127\S+, not to https:\/\/other\.example:7700; to move it, run/);
    },
    JOIN_LIMIT_MS,
  );

  it(
    "should read the token from a file, and use an agent that is installed",
    async () => {
      const { line, token } = await create();
      writeFileSync(join(machine.root, "token"), `${token}\n`);
      execFileSync("sh", ["-ec", `tar -xzf ${join(packages, names.deb)} -C ${machine.root}`]);
      const fromFile = line.replace(/ROLLCALL_JOIN_TOKEN=\S+/, "ROLLCALL_JOIN_TOKEN_FILE=$ROLLCALL_JOIN_ROOT/token");
      const end = await machine.run(`${fromFile} --name golden`);
      expect(end).toEqual({ code: 0, out: expect.stringMatching(/^join\.sh: golden has joined \S+; .*\n$/), err: "" });
      await isHealthy("golden");
    },
    JOIN_LIMIT_MS,
  );

  it.each([
    ["not root", { FAKE_UID: "1000" }, "needs root"],
    ["an unknown kind of machine", { FAKE_MACHINE: "riscv64" }, "there are no packages for riscv64"],
    ["a platform without a package", { FAKE_MACHINE: "aarch64" }, "linux-arm64 has no package at this control plane"],
    ["a full disk", { FAKE_CURL_EXIT: "23" }, "is the disk full\\?"],
    [
      "a temporary directory that does not exist",
      { TMPDIR: "/dev/null/x" },
      "cannot create a directory in /dev/null/x",
    ],
    ["an agent that does not start", { FAKE_START_FAILS: "yes" }, "cannot start rollcall-agent\\.service: Job for"],
  ])("should refuse, and leave nothing behind: %s", async (_, env, message) => {
    const { line } = await create();
    const before = machine.files();
    // The fault is that of the machine, not of the shell that downloads the script.
    const faulty = Object.entries(env).map(([key, value]) => `${key}=${value}`);
    const end = await machine.run(line.replace(" ROLLCALL_JOIN_TOKEN", ` ${faulty.join(" ")} ROLLCALL_JOIN_TOKEN`));
    expectUndone(before, end, new RegExp(`^join\\.sh: .*${message}`));
  });

  it("should refuse a machine without systemd", async () => {
    rmSync(join(machine.root, "run"), { recursive: true });
    const before = machine.files();
    expectUndone(before, await machine.run((await create()).line), "does not run systemd");
  });

  it("should undo a package that could not be installed completely", async () => {
    machine.dispose();
    machine = createJoiningMachine({ isDebian: true });
    const before = machine.files();
    const { line } = await create();
    const end = await machine.run(line.replace(" ROLL", " FAKE_APT_FAILS=yes ROLL"));
    expectUndone(before, end, `cannot install ${names.deb}: E: write error: No space left on device`);
  });

  it("should refuse a package that was altered", async () => {
    const path = join(packages, names.tarball);
    const content = readFileSync(path);
    const before = machine.files();
    writeFileSync(path, Buffer.concat([content, Buffer.from("x")]));
    try {
      expectUndone(before, await machine.run((await create()).line), /was altered: its SHA-256 is [0-9a-f]{64}, but/);
    } finally {
      writeFileSync(path, content);
    }
  });

  it("should name what is wrong with a token, and install nothing", async () => {
    const before = machine.files();
    const [revoked, expired, named, used] = await Promise.all([
      create(),
      create("--ttl", "1s"),
      create("--name-pattern", "gpu-*"),
      create(),
    ]);
    await rollcall("token", "revoke", revoked.id, "--yes");
    const agent = fixture.agent(
      "first-use",
      "--ca-file",
      join(fixture.dataDirectory, "tls/ca.pem"),
      ...[...["--join-token", used.token]],
    );
    await agent.logged("connected");
    await agent.killed();
    await until("an expired token", async () =>
      (await rollcall("token", "show", expired.id)).stdout.includes("expired"),
    );
    const cases = [
      [revoked.line, /refuses: join token \S+ was revoked/],
      [expired.line, /refuses: join token \S+ has expired/],
      [named.line, /refuses: join token \S+ admits only nodes whose name matches gpu-\*, not some-host/],
      [used.line, /refuses: join token \S+ has reached its maximum number of uses/],
      [named.line.replace(/(rcj_\w{8}_\w{12}_).{4}/, "$1AAAA"), /refuses: the join token of node some-host does not/],
      [named.line.replace(/(ROLLCALL_JOIN_TOKEN=rcj_)\S+/, "$1'x y'"), /contains characters that no token has/],
      [named.line.replace(/ROLLCALL_JOIN_TOKEN=\S+/, ""), /set ROLLCALL_JOIN_TOKEN_FILE/],
      [named.line.replace(/TOKEN=\S+/, "TOKEN_FILE=/dev/null/x"), /cannot read the join token from \/dev\/null\/x/],
    ] as const;
    for (const [line, message] of cases) expectUndone(before, await machine.run(line), message);
  });

  it(
    "should undo everything if the control plane does not admit the node",
    async () => {
      const before = machine.files();
      const { line } = await create();
      await rollcall("node", "ban", "--id", "banned-1", "--yes");
      const end = await machine.run(`${line} --name banned-1`);
      expectUndone(before, end, /does not admit this machine: NODE_BANNED: /);
    },
    JOIN_LIMIT_MS,
  );

  it.each([
    ["--server http://192.0.2.7:7700", "is not encrypted"],
    ["--server http://127.0.0.1.example:7700", "is not encrypted"],
    ["--server ftp://192.0.2.7", "is not a URL"],
    ["--server 'https://a\"b'", "contains a character"],
    ["--pin nonsense", "--pin is sha256//"],
    ["--name 'a b'", "cannot be the id of a node"],
    ["--ca-file /dev/null/x", "cannot read /dev/null/x"],
    ["--unknown", "unknown option --unknown"],
    ["--name", "--name needs a value"],
  ])("should refuse %s", async (options, message) => {
    const before = machine.files();
    expectUndone(before, await machine.run(`${(await create()).line} ${options}`), message);
  });

  it("should do nothing if it was not downloaded completely", async () => {
    const text = readFileSync(SCRIPT, "utf8");
    const before = machine.files();
    writeFileSync(join(packages, "part.sh"), text.slice(0, text.lastIndexOf("main ")));
    const end = await machine.run(`ROLLCALL_JOIN_TOKEN=rcj_x sh ${join(packages, "part.sh")} --server https://x`);
    expect(end).toEqual({ code: 0, out: "", err: "" });
    expect(machine.files()).toEqual(before);
    expect(machine.started()).toBe("");
  });
});
