import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { until } from "../../../libs/testkit/src/time.ts";

const run = promisify(execFile);
const LIMIT_MS = 120_000;
const BUSYBOX = "/bin/busybox";

/** The image that the tests run. It contains a shell and its tools. */
export const IMAGE = "localhost/rollcall-test:1";

const APPLETS = [
  ...["cat", "dd", "echo", "env", "false", "grep", "head", "httpd", "id", "kill", "ls", "mkdir", "nc", "sh", "sleep"],
  ...["sort", "tail", "test", "touch", "true", "tr", "wget"],
];

/** Podman with separate storage, and its service on a socket. The service can be stopped and started. */
export class PodmanEngine {
  readonly root: string;
  #service: ChildProcess | null = null;

  private constructor(root: string) {
    this.root = root;
  }

  /** Create an engine with the test's image, and start its service. */
  static async create(): Promise<PodmanEngine> {
    const root = await mkdtemp(join(tmpdir(), "rc-podman-"));
    const engine = new PodmanEngine(root);
    // Use other settings for CI's machines. They have no systemd, and use version 1 of cgroups, which crun refuses.
    await writeFile(
      join(root, "containers.conf"),
      `[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n` +
        "[containers]\ndefault_ulimits = []\n",
    );
    const storage = `[storage]\ndriver = "vfs"\nrunroot = "${root}/run"\ngraphroot = "${root}/graph"\n`;
    await writeFile(join(root, "storage.conf"), storage);
    // Allow plain HTTP, because the tests' registry has no certificate.
    await writeFile(join(root, "registries.conf"), `[[registry]]\nlocation = "127.0.0.1"\ninsecure = true\n`);
    await engine.#importImage();
    await engine.start();
    return engine;
  }

  get socketPath(): string {
    return join(this.root, "engine.sock");
  }

  /** The address of the service, for DOCKER_HOST. */
  get host(): string {
    return `unix://${this.socketPath}`;
  }

  /** Start the service on the socket. Containers run without it. */
  async start(): Promise<void> {
    const args = ["system", "service", "--time=0", this.host];
    // Set the working directory, because a container that runs out of memory leaves a file there.
    const service = spawn("podman", args, { cwd: this.root, env: this.#env, stdio: "ignore" });
    this.#service = service;
    await once(service, "spawn");
    await until("an engine that answers", async () => {
      const args = ["--silent", "--fail", "--unix-socket", this.socketPath, "http://engine/_ping"];
      return (await run("curl", args, { timeout: LIMIT_MS })).stdout === "OK";
    });
  }

  /** Kill the service, and remove its socket. */
  async stop(): Promise<void> {
    const service = this.#service;
    this.#service = null;
    if (service === null || service.exitCode !== null || service.signalCode !== null) return;
    const exited = once(service, "exit");
    service.kill("SIGKILL");
    await exited;
    await rm(this.socketPath, { force: true });
  }

  /** Run a podman command. Returns its output. */
  async podman(...words: readonly string[]): Promise<string> {
    const { stdout } = await run("podman", [...words], { env: this.#env, timeout: LIMIT_MS });
    return stdout.trim();
  }

  /** The ids of all containers. */
  async containers(): Promise<readonly string[]> {
    const text = await this.podman("ps", "--all", "--no-trunc", "--format", "{{.ID}}");
    return text
      .split("\n")
      .filter((line) => line !== "")
      .sort();
  }

  /** Remove the engine and all its containers. */
  async dispose(): Promise<void> {
    await this.podman("rm", "--force", "--all", "--time=0");
    await this.stop();
    await rm(this.root, { recursive: true, force: true });
  }

  async #importImage(): Promise<void> {
    const bin = join(this.root, "image", "bin");
    await mkdir(bin, { recursive: true });
    await mkdir(join(this.root, "image", "tmp"), { mode: 0o1777 });
    await cp(BUSYBOX, join(bin, "busybox"), { dereference: true });
    for (const name of APPLETS) await symlink("busybox", join(bin, name));
    await writeFile(join(bin, "own"), "#!/bin/sh\necho the image has a command\n", { mode: 0o755 });
    const archive = join(this.root, "image.tar");
    await run("tar", ["--directory", join(this.root, "image"), "--create", "--file", archive, "."]);
    await this.podman("import", "--change", "CMD /bin/own", archive, IMAGE);
    await rm(archive);
  }

  get #env(): NodeJS.ProcessEnv {
    return {
      PATH: process.env.PATH,
      HOME: this.root,
      CONTAINERS_CONF: join(this.root, "containers.conf"),
      CONTAINERS_REGISTRIES_CONF: join(this.root, "registries.conf"),
      CONTAINERS_STORAGE_CONF: join(this.root, "storage.conf"),
    };
  }
}
