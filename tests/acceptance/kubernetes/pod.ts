import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { until } from "../../../libs/testkit/src/until.ts";
import type { Container } from "../../kubernetes/manifests.ts";
import { type ImageRoot, type Mount, NODE, type PodData, PROGRAM, writeVolumes } from "./pod-root.ts";

export interface PodOptions {
  readonly name: string;
  readonly node: string;
  readonly container: Container;
  readonly network: { readonly space: string; readonly address: string };
  readonly folder: string;
  readonly data: PodData;
  readonly image: ImageRoot;
  /** The lines of /etc/hosts, because the pod has no DNS of a cluster. */
  readonly hosts: string;
  /** Variables that Kubernetes adds to the environment. */
  readonly env: Readonly<Record<string, string>>;
}

/** A container of a pod, run as a process. */
export interface Pod {
  readonly name: string;
  readonly address: string;
  /** Whether Services forward to the pod. */
  readonly isReady: boolean;
  /** The output of the process so far. */
  readonly output: string;
  ready(): Promise<void>;
  /** Wait until the process exits. Returns the exit code. */
  exit(): Promise<number | string>;
  /**
   * Terminate the process as a kubelet does. Returns the exit code, or the signal if the process took longer than its
   * grace period.
   */
  terminate(): Promise<number | string>;
  kill(): void;
}

/**
 * A script that creates the root in memory, read-only except for writable mounts. The program then replaces the shell,
 * as the container's user and without capabilities.
 */
const ENTER = `set -e
root=$1 name=$2 user=$3 group=$4 hosts=$5
shift 5
mount --make-rprivate /
mount -t tmpfs tmpfs "$root"
mkdir -p "$root/proc" "$root/dev" "$root/etc" "$root/tmp"
printf '%b' "$hosts" > "$root/etc/hosts"
echo 'hosts: files' > "$root/etc/nsswitch.conf"
while [ "$1" != -- ]; do
  case $1 in
    link) mkdir -p "$(dirname "$root$3")"; ln -s "$2" "$root$3" ;;
    ro) mkdir -p "$root$3"; mount --rbind "$2" "$root$3"; mount -o remount,bind,ro "$root$3" ;;
    rw) mkdir -p "$root$3"; mount --bind "$2" "$root$3" ;;
  esac
  shift 3
done
shift
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc" || mount --rbind /proc "$root/proc"
mount -o remount,ro "$root"
hostname "$name"
exec chroot "$root" /usr/bin/setpriv --reuid "$user" --regid "$user" --groups "$group" \\
  --bounding-set=-all --inh-caps=-all --no-new-privs "$@"`;

const READY_EVERY_MS = 250;
/** The failureThreshold in the manifests. A ready pod stays ready until this many consecutive probes have failed. */
const MOST_FAILURES = 2;
const PRE_STOP_S = 5;
const START_LIMIT_MS = 120_000;

/** Start a container with exactly the arguments, environment and files of its manifest. */
export async function startPod(options: PodOptions): Promise<Pod> {
  const { name, container, network, image } = options;
  const folder = join(options.folder, name);
  mkdirSync(join(folder, "root"), { recursive: true });
  const mounts = [...image.mounts, ...(await writeVolumes(folder, container, options.data))];
  const env = environmentOf(options);
  const expand = (text: string) => text.replaceAll(/\$\((\w+)\)/g, (_, variable) => env[variable] ?? "");
  const { runAsUser = 0, fsGroup = 0 } = Object(container.pod.securityContext);
  const words = [
    ...[`--net=/run/netns/${network.space}`, "unshare", "--mount", "--uts", "sh", "-c", ENTER, "sh"],
    ...[join(folder, "root"), name, String(runAsUser), String(fsGroup), options.hosts],
    ...image.links.flatMap(([path, target]) => ["link", target, path]),
    ...mounts.flatMap(({ from, to, isWritable }: Mount) => [isWritable ? "rw" : "ro", from, to]),
    ...["--", "/usr/bin/env", "-i", ...Object.entries(env).map(([key, value]) => `${key}=${value}`)],
    ...[join(NODE, basename(process.execPath)), join(PROGRAM, "src/main.js"), ...container.args.map(expand)],
  ];
  const child = spawn("nsenter", words, { stdio: ["ignore", "pipe", "pipe"], detached: true });
  return new RunningPod(name, network.address, child, container.pod.terminationGracePeriodSeconds ?? 30);
}

/** Merge the environments of the image, of Kubernetes, and of the manifest. */
function environmentOf({ container, network, node, data, env, name }: PodOptions): Readonly<Record<string, string>> {
  const fields: Readonly<Record<string, string>> = { "status.podIP": network.address, "spec.nodeName": node };
  const own = (container.env ?? []).map(({ name: variable, value, valueFrom }) => {
    const { fieldRef, secretKeyRef } = valueFrom ?? {};
    const found =
      value ??
      (fieldRef === undefined ? undefined : fields[fieldRef.fieldPath]) ??
      (secretKeyRef === undefined ? undefined : data.secrets[secretKeyRef.name]?.[secretKeyRef.key]);
    if (found === undefined) throw new Error(`${container.owner} has no ${variable}`);
    return [variable, found] as const;
  });
  const ofImage = { PATH: "/usr/bin:/bin", HOME: "/var/lib/rollcall", ROLLCALL_DATA_DIR: "/var/lib/rollcall" };
  return { ...ofImage, HOSTNAME: name, ...env, ...Object.fromEntries(own) };
}

class RunningPod implements Pod {
  readonly name: string;
  readonly address: string;
  readonly #child: ChildProcess;
  readonly #graceS: number;
  #output = "";
  #answers = false;
  #isEnding = false;

  constructor(name: string, address: string, child: ChildProcess, graceS: number) {
    this.name = name;
    this.address = address;
    this.#child = child;
    this.#graceS = graceS;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#output += text;
      });
    }
    void this.#probe();
  }

  get isReady(): boolean {
    return this.#answers && !this.#isEnding && this.#end() === null;
  }

  get output(): string {
    return this.#output;
  }

  async ready(): Promise<void> {
    await until(`${this.name} to be ready`, () => this.isReady || this.#end() !== null, START_LIMIT_MS).catch(() => {});
    if (!this.isReady) throw new Error(`${this.name} did not become ready:\n${this.#output}`);
  }

  async exit(): Promise<number | string> {
    await until(`the end of ${this.name}`, () => this.#end() !== null, START_LIMIT_MS);
    return this.#end() ?? "";
  }

  async terminate(): Promise<number | string> {
    // Services stop forwarding to the pod while the preStop hook sleeps.
    this.#isEnding = true;
    await delay(PRE_STOP_S * 1_000);
    this.#child.kill("SIGTERM");
    const limitMs = (this.#graceS - PRE_STOP_S) * 1_000;
    await until(`the end of ${this.name}`, () => this.#end() !== null, limitMs).catch(() => this.kill());
    return this.exit();
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  #end(): number | string | null {
    const { exitCode, signalCode } = this.#child;
    return exitCode ?? signalCode;
  }

  /** Probe the pod as a kubelet does. Agents and jobs have no probe. */
  async #probe(): Promise<void> {
    let failures = MOST_FAILURES;
    while (this.#end() === null) {
      const answer = await fetch(`http://${this.address}:7790/readyz`).catch(() => null);
      failures = answer?.ok ? 0 : failures + 1;
      this.#answers = failures < MOST_FAILURES;
      await answer?.body?.cancel();
      await delay(READY_EVERY_MS);
    }
  }
}
