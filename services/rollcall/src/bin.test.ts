import { execFile } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";

const MAKEFILE = fileURLToPath(new URL("../../../Makefile", import.meta.url));
const LAUNCHER = fileURLToPath(new URL("../../../bin/rollcall", import.meta.url));
const BUNDLER = fileURLToPath(new URL("../bundle.mjs", import.meta.url));
const PRINTS_ARGUMENTS = 'console.log(["program", ...process.execArgv, ...process.argv.slice(2)].join());';
const run = promisify(execFile);

// Test a copy of the launcher, because the checkout may or may not be built.
let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "rollcall-bin-"));
  mkdirSync(join(root, "bin"));
  copyFileSync(LAUNCHER, join(root, "bin/rollcall"));
});
afterEach(() => rmSync(root, { recursive: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

/** Put a Node.js where only the launcher finds it, not in the PATH. */
function installNode(path: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  symlinkSync(process.execPath, join(root, path));
}

describe("bin/rollcall", () => {
  it("should say what to do when nothing is built", async () => {
    await expect(run(join(root, "bin/rollcall"), ["version"])).rejects.toMatchObject({
      code: 1,
      stderr: "rollcall is not built yet: run `make build` first\n",
    });
  });

  it.each([
    ["a checkout", "node_modules/.bin/node", "services/rollcall/bundle/src/start.cjs"],
    ["a package", "lib/rollcall/bin/node", "lib/rollcall/bin/rollcall.cjs"],
  ])("should run the program of %s with its own Node.js, also through a link", async (_, node, program) => {
    installNode(node);
    write(program, PRINTS_ARGUMENTS);
    const env = { PATH: "/usr/bin:/bin" };
    expect((await run(join(root, "bin/rollcall"), ["node", "list"], { env })).stdout).toBe("program,node,list\n");
    symlinkSync(join(root, "bin/rollcall"), join(root, "linked"));
    expect((await run(join(root, "linked"), ["up"], { env })).stdout).toBe("program,--max-semi-space-size=32,up\n");
    const keeper = await run(join(root, "linked"), ["keeper"], { env });
    expect(keeper.stdout).toBe("program,--max-semi-space-size=1,keeper\n");
  });

  it("should give the Node.js of a package its bundled libraries before those that the user names", async () => {
    installNode("lib/rollcall/bin/node");
    write("lib/rollcall/bin/rollcall.cjs", "console.log(process.env.LD_LIBRARY_PATH);");
    const folder = join(realpathSync(root), "lib/rollcall/lib");
    const start = (env: NodeJS.ProcessEnv) => run(join(root, "bin/rollcall"), [], { env });
    expect((await start({ PATH: "/usr/bin:/bin" })).stdout).toBe(`${folder}\n`);
    const named = { PATH: "/usr/bin:/bin", LD_LIBRARY_PATH: "/opt/lib" };
    expect((await start(named)).stdout).toBe(`${folder}:/opt/lib\n`);
  });

  it.each([
    ["node", "EBADF"],
    ["up", "written"],
    ["agent", "written"],
    ["up --help", "EBADF"],
    ["serve health -h", "EBADF"],
  ])("should make writing to a closed output fail, and let servers work without one: %s", async (verb, outcome) => {
    installNode("node_modules/.bin/node");
    const program = 'let said = "written"; try { require("fs").writeSync(1, "x"); } catch ({ code }) { said = code; }';
    write("services/rollcall/bundle/src/start.cjs", `${program} console.error(said);`);
    const words = ["-c", 'exec "$0" "$@" >&-', join(root, "bin/rollcall"), ...verb.split(" ")];
    for (const shell of ["sh", "bash"]) expect((await run(shell, words)).stderr).toBe(`${outcome}\n`);
  });

  it("should report a Node.js that cannot be executed", async () => {
    write("node_modules/.bin/node", "");
    write("services/rollcall/bundle/src/start.cjs", PRINTS_ARGUMENTS);
    chmodSync(join(root, "node_modules/.bin/node"), 0o644);
    await expect(run(join(root, "bin/rollcall"), ["version"])).rejects.toMatchObject({ code: 1 });
  });
});

describe("make", () => {
  /** The commands that make would run to build in an installed checkout. */
  const commands = async () => {
    copyFileSync(MAKEFILE, join(root, "Makefile"));
    for (const manifest of ["package.json", "pnpm-workspace.yaml", "pnpm-lock.yaml"]) write(manifest, "");
    write("node_modules/.installed", "");
    return (await run("make", ["--dry-run", "build"], { cwd: root })).stdout;
  };

  it("should install nothing again while the link to Node.js leads to one", async () => {
    installNode("node_modules/.bin/node");
    expect(await commands()).not.toContain("install");
  });

  it.each([
    ["is missing", null],
    ["leads to one that has gone", "/nowhere/node"],
  ])("should install again when the link to Node.js %s", async (_, target) => {
    mkdirSync(join(root, "node_modules/.bin"), { recursive: true });
    if (target !== null) symlinkSync(target, join(root, "node_modules/.bin/node"));
    expect(await commands()).toContain(" install --frozen-lockfile\n");
  });
});

describe("bundle.mjs", () => {
  it("should say in one line where it cannot write, and what to do", async () => {
    // A file instead of a directory stands for a read-only checkout, because not even root can create anything below a
    // file.
    write("checkout", "");
    const built = run(process.execPath, [BUNDLER, join(root, "checkout/bundle")]);
    await expect(built).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^building .*\ncannot build into \S+\/checkout: ENOTDIR: .*; build in a copy of the checkout that you can write to\n$/,
      ),
    });
  });
});
