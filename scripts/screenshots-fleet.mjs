// Starts a separate `rollcall up` with about 60 machines, so that its console shows something on every page. Six of
// them are real agents, which run a job if this script runs as root. The others are fake agents.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ExecutionState } from "../libs/api/src/gen/rollcall/scheduler/v1/job_pb.ts";
import { FakeAgent } from "../libs/testkit/src/fake-agent.ts";
import { until } from "../libs/testkit/src/time.ts";
import { TestNode } from "../services/registry/src/testing/test-node.ts";
import { ControlPlaneClient } from "../services/rollcall/src/testing/control-plane-client.ts";
import { freePorts } from "../services/rollcall/src/testing/free-ports.ts";
import { haveEnded, processesOf } from "../services/rollcall/src/testing/processes.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PATIENCE_MS = 120_000;
const MACHINES = 6;
const JOB = "web";
/** A fake machine with two NUMA nodes and eight GPUs. It runs no work. */
const LARGE = "dgx-1";
/**
 * The other fake machines of each rack: name prefix, number, threads, memory in GiB, and processor usage in percent.
 */
const RACKS = [
  { name: "web", count: 16, threads: 32, memoryGib: 64, busy: [12, 35] },
  { name: "db", count: 6, threads: 64, memoryGib: 512, busy: [30, 55] },
  { name: "batch", count: 24, threads: 96, memoryGib: 256, busy: [60, 97] },
  { name: "edge", count: 7, threads: 8, memoryGib: 16, busy: [3, 20] },
];
const ZONES = ["a", "b", "c"];
const BEAT_MS = 1_000;
/**
 * Flags that let an agent run processes. They are empty unless the user is root, because only root can run processes as
 * another user.
 */
const WORK = process.getuid() === 0 ? ["--executors", "process", "--work-user", "nobody"] : [];

/** Prepare a fleet. `end()` stops everything that `start()` has started, even if `start()` failed midway. */
export function createFleet() {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-screenshots-"));
  const fleet = { folder, programs: [], fakes: new Map() };
  return { start: () => start(fleet), end: () => end(fleet) };
}

async function start(fleet) {
  const { folder } = fleet;
  const [port, agentPort, probePort, internalPort] = await freePorts(4);
  const ports = { port, "agent-port": agentPort, "probe-port": probePort, "internal-port": internalPort };
  const flags = Object.entries(ports).flatMap(([flag, value]) => [`--${flag}`, String(value)]);
  const dataDirectory = join(folder, "data");
  fleet.up = run(["up", "--data-dir", dataDirectory, ...flags, "--manual-approval", "--no-agent"]);
  await says(fleet.up, "everything is up");
  const server = `127.0.0.1:${port}`;
  const tokenFile = join(dataDirectory, "admin-token");
  fleet.client = new ControlPlaneClient({ registry: server, admin: server, tokenFile });
  for (let index = 1; index <= MACHINES; index += 1) {
    const name = `gpu-${index}`;
    const identity = ["--server", server, "--state-dir", join(folder, name), "--name", name];
    const program = run(["agent", ...identity, ...WORK], plantGpus(folder, index));
    fleet.programs.push(program);
    await says(program, "waiting for an operator's approval");
  }
  await addLarge(fleet, `127.0.0.1:${agentPort}`);
  const others = await addRacks(fleet, `127.0.0.1:${agentPort}`);
  const token = readFileSync(tokenFile, "utf8").trim();
  return { origin: `http://${server}`, token, executionId: await decide(fleet, { server, token, others }) };
}

/**
 * Stop everything in the required order: executions, agents, keepers (which outlive their agents), and the control
 * plane. After that, nothing writes to the folder.
 */
async function end({ folder, programs, fakes, up, client }) {
  for (const close of fakes.values()) close();
  // Ignore an error here, because it must not prevent the rest from being stopped.
  if (client !== undefined) await stopJob(client).catch((cause) => process.stderr.write(`${cause}\n`));
  for (const program of programs) await ended(program, "SIGTERM");
  await endOthers(join(folder, "gpu-"), "SIGTERM");
  if (up !== undefined) await ended(up, "SIGTERM");
  await endOthers(folder, "SIGKILL");
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}

async function stopJob(client) {
  const { jobs } = await client.jobs.listJobs({});
  if (jobs.length === 0) return;
  await client.jobs.stopJob({ name: JOB, reason: "the pictures are taken" });
  await until("the end of what runs", async () => {
    const { executions } = await client.jobs.listExecutions({ job: JOB });
    return executions.every(({ endTime }) => endTime !== undefined);
  });
}

/** Stop the processes whose command line contains a path. */
async function endOthers(path, signal) {
  const pids = (await processesOf(path)).map(({ pid }) => pid);
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // Ignore the error, because the process has already ended.
    }
  }
  await haveEnded(...pids);
}

/** Start `rollcall` from the checkout. */
function run(words, env = {}) {
  return spawn(join(ROOT, "bin/rollcall"), words, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...env },
  });
}

/** Wait until a program prints a text. */
function says(child, said) {
  return new Promise((done, failed) => {
    const timer = setTimeout(() => failed(new Error(`it did not say "${said}"`)), PATIENCE_MS);
    child.stdout.setEncoding("utf8").on("data", (text) => {
      if (!text.includes(said)) return;
      clearTimeout(timer);
      done();
    });
    child.once("exit", (code) => failed(new Error(`it ended with ${code} before it said "${said}"`)));
  });
}

async function ended(child, signal) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((done) => child.once("exit", done));
  child.kill(signal);
  await exit;
}

/** Make an agent find two busy GPUs on a machine without any. Returns the environment with a fake nvidia-smi. */
function plantGpus(folder, machine) {
  const programs = join(folder, `programs-${machine}`);
  mkdirSync(programs);
  const bus = (gpu) => `00000000:${gpu === 0 ? "17" : "65"}:00.0`;
  const facts = [0, 1].map(
    (gpu) => `echo "${gpu}, NVIDIA H100 80GB HBM3, GPU-${machine}${gpu}5f2c1e-7b1d, 550.54.15, ${bus(gpu)}, 81559"`,
  );
  const usage = [0, 1].map(
    (gpu) =>
      `echo "${gpu}, $((50 + (s * 7 + ${gpu} * 31) % 45)), $((52000 + s * 97 % 9000)), 81559, $((58 + s * 3 % 11))"`,
  );
  const lines = ["#!/bin/sh", "s=$(date +%s)", 'case "$1" in', "*utilization*)", ...usage, ";;", "*)", ...facts];
  writeFileSync(join(programs, "nvidia-smi"), `${[...lines, ";;", "esac"].join("\n")}\n`, { mode: 0o755 });
  return { PATH: `${programs}:${process.env.PATH}` };
}

/** Make the machines of all racks join and report their usage. Returns their names. */
async function addRacks(fleet, agentsAddress) {
  const names = [];
  for (const { name: rack, count, threads, memoryGib, busy } of RACKS) {
    for (const index of range(count)) {
      const name = `${rack}-${String(index + 1).padStart(2, "0")}`;
      const info = {
        hostname: `${name}.example.com`,
        agentVersion: "0.1.0",
        os: { family: "linux", name: "Debian GNU/Linux 13 (trixie)", kernel: "6.12.48", architecture: "x64" },
        cpu: {
          model: "AMD EPYC 9354 32-Core Processor",
          sockets: 1,
          cores: threads / 2,
          threads,
          usableMillis: threads * 1_000,
        },
        memoryBytes: BigInt(memoryGib) * 2n ** 30n,
        diskBytes: 2n ** 41n,
        labels: { zone: ZONES[index % ZONES.length], role: rack },
      };
      await addFake(fleet, agentsAddress, name, info, (at) => ({
        ...{ cpuPercent: wave(at + index, ...busy), memoryTotalMib: memoryGib * 1_024 },
        ...{ memoryUsedMib: Math.round(wave(at + index, 0.3, 0.7) * memoryGib * 1_024) },
        ...{ diskUsedMib: 600_000 + index * 10_000, diskTotalMib: 2 ** 21 },
      }));
      names.push(name);
    }
  }
  return names;
}

/** Make the large machine join and report its usage. */
async function addLarge(fleet, agentsAddress) {
  const info = {
    hostname: "dgx-1.example.com",
    agentVersion: "0.1.0",
    os: { family: "linux", name: "Debian GNU/Linux 13 (trixie)", kernel: "6.12.48", architecture: "x64" },
    cpu: { model: "AMD EPYC 9654 96-Core Processor", sockets: 2, cores: 192, threads: 384, usableMillis: 384_000 },
    memoryBytes: 2n ** 41n,
    diskBytes: 30n * 2n ** 40n,
    numaNodes: range(2).map((id) => ({
      ...{ id, cpus: id === 0 ? "0-95,192-287" : "96-191,288-383" },
      ...{ memoryBytes: 2n ** 40n, distances: id === 0 ? [10, 32] : [32, 10] },
    })),
    gpus: range(8).map((index) => ({
      ...{ index, name: "NVIDIA H100 80GB HBM3", uuid: `GPU-7d1f0c2${index}-5a3e`, vendor: "NVIDIA" },
      ...{ pciAddress: `0000:${index + 1}b:00.0`, driverVersion: "550.54.15", memoryMib: 81_559 },
    })),
    interfaces: [{ name: "eth0", addresses: ["192.0.2.17"], mac: "02:42:c0:00:02:11", speedMbps: 100_000 }],
  };
  await addFake(fleet, agentsAddress, LARGE, info, (at) => ({
    ...{ cpuPercent: wave(at, 38, 61), memoryUsedMib: 1_140_000, memoryTotalMib: 2 ** 21 },
    ...{ diskUsedMib: 9_800_000, diskTotalMib: 30 * 2 ** 20 },
    ...{ temperatureAverageCelsius: wave(at, 54, 58), temperatureMaxCelsius: wave(at + 1, 66, 73) },
    gpus: range(8).map((index) => ({
      ...{ index, utilizationPercent: wave(at + index, 71, 98), memoryTotalMib: 81_559 },
      ...{ memoryUsedMib: Math.round(wave(at + index, 61_000, 74_000)), temperatureCelsius: wave(at + index, 58, 69) },
    })),
    numaNodes: range(2).map((id) => ({
      ...{ id, cpuPercent: wave(at + 2 * id, 25, 80), memoryTotalMib: 2 ** 20 },
      memoryUsedMib: Math.round(wave(at + id, 480_000, 640_000)),
    })),
  }));
}

/**
 * Make a fake machine join and report its usage until the end. `usageAt` computes the usage from an angle that grows
 * with time.
 */
async function addFake({ client, fakes }, agentsAddress, name, info, usageAt) {
  const node = new TestNode(name);
  await node.register(client.registry, info);
  const agent = new FakeAgent({ nodeId: node.id, keyPair: node.keyPair });
  const stream = await agent.join(agentsAddress);
  const beat = () => {
    stream.beat(usageAt(Date.now() / 9_000));
    stream.take();
  };
  beat();
  const timer = setInterval(beat, BEAT_MS);
  fakes.set(name, () => {
    clearInterval(timer);
    agent.close();
  });
}

function range(count) {
  return Array.from({ length: count }, (_, index) => index);
}

function wave(at, low, high) {
  return low + ((high - low) * (1 + Math.sin(at))) / 2;
}

/**
 * Create something to show: approved, cordoned, labelled, drained and pending machines, and a job if machines run work.
 * Returns the id of an execution, or "none" if no execution runs.
 */
async function decide({ client, fakes }, { server, token, others }) {
  const call = async (service, method, body) => {
    const answer = await fetch(`http://${server}/rollcall.${service}/${method}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${method}: ${await answer.text()}`);
  };
  const admin = (method, body) => call("admin.v1.AdminService", method, body);
  const nodes = [LARGE, "gpu-1", "gpu-2", "gpu-3", "gpu-4"];
  const waiting = ["edge-06", "edge-07"];
  const approved = others.filter((name) => !waiting.includes(name));
  await admin("ApproveNode", { selector: { nodes: [...nodes, ...approved] } });
  const set = { zone: "a", "rollcall.io/group": "train" };
  await admin("SetNodeLabels", { selector: { nodes: [LARGE, "gpu-1", "gpu-2"] }, set });
  await admin("SetNodeLabels", { selector: { nodes: ["gpu-3", "gpu-4"] }, set: { zone: "b" } });
  const executionId = WORK.length === 0 ? "none" : await runJob(client, call);
  await admin("CordonNode", { node: "gpu-3", reason: "new disks" });
  await admin("MarkNodeUnhealthy", { node: "gpu-4", reason: "fan is loud" });
  await admin("CordonNode", { selector: { nodes: ["db-02", "web-07"] }, reason: "kernel upgrade" });
  await admin("DrainNode", { selector: { nodes: ["batch-03"] }, reason: "new memory", deadline: "3600s" });
  await admin("BanNode", { node: "edge-05", reason: "stolen" });
  // Crash these two. They are disconnected immediately, and unhealthy a minute later.
  for (const name of ["web-11", "batch-17"]) fakes.get(name)();
  await admin("DrainNode", { node: "gpu-2", reason: "new kernel", deadline: "3600s" });
  await call("admin.v1.JoinTokenService", "CreateJoinToken", { description: "rack 12", maxUses: 40, ttl: "86400s" });
  await call("admin.v1.AccessService", "CreateAccessToken", { name: "dashboards", role: "ROLE_VIEWER" });
  await call("admin.v1.HealthPolicyService", "SetHealthPolicy", {
    scope: { group: "train" },
    selector: "rollcall.io/group=train",
    values: { unhealthyAfter: "45s" },
    reason: "long steps",
  });
  const spec = {
    url: "https://ops.example/rollcall",
    description: "pages the operators",
    types: ["node.health.changed"],
  };
  await call("events.v1.WebhookService", "SetWebhook", { name: "ops", spec });
  return executionId;
}

async function runJob(client, call) {
  const command = ["sh", "-c", 'n=0; while :; do n=$((n + 1)); echo "served $n requests"; sleep 1; done'];
  const spec = { name: JOB, type: "JOB_TYPE_SERVICE", count: 2, process: { command } };
  await call("scheduler.v1.JobService", "SubmitJob", { spec });
  return until("an execution of the job to be ready", async () => {
    const { executions } = await client.jobs.listExecutions({ job: JOB });
    return executions.find(({ state }) => state === ExecutionState.READY)?.id ?? null;
  });
}
