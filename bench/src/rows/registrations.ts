import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { TestAuthority } from "@rollcall/testkit/certificates";
import type { Bench, BenchContext } from "../bench-context.ts";
import { LoadProcess } from "../load/load-process.ts";
import type { RegistrationOrder, RegistrationOutcome } from "../load/registration-load.ts";
import { type Figure, percentile } from "../report.ts";
import { startBareServer } from "../servers/bare-grpcjs.ts";
import { startDatabase, withClient } from "../servers/database.ts";
import { makeJoinToken } from "../servers/join-token.ts";
import { startService } from "../servers/rollcall.ts";
import type { Candidate } from "../servers/server-process.ts";

const CONNECTIONS = 256;
const REGISTRIES = 2;
const WARM_UP_NODES = 2_000;
const AIM_PER_SECOND = 2_500;
/** The rate, in nodes per second, at which the duration of registrations is measured. */
const PACED_RATE = 500;
const AIM_P99_MS = 100;
const COMMITTERS = 16;

/** Registers new nodes, each with a challenge, a signature, a preauthorized join token and a durable commit. */
export const registrations: Bench = {
  name: "registrations",
  title:
    `new nodes, challenge and join token included, ${CONNECTIONS} at once to ${REGISTRIES} registries, every one ` +
    "of them durable",
  async run(context) {
    const { url } = await startDatabase(context);
    const commitsPerSecond = await measureCommits(context, url);
    const joinToken = await makeJoinToken(url);
    const registry = (...flags: string[]) => startService(context, "registry", url, flags);
    const bare = await measure(context, {
      ...{ name: "bare grpc-js", from: 0, joinToken },
      start: () => startBareServer(context),
    });
    const plain = await measure(context, { name: "clear text", from: 0, joinToken, start: () => registry() });
    const authority = new TestAuthority(mkdtempSync(join(context.directory, "certificates-")));
    const { certFile, keyFile } = authority.write("registry");
    const tls = await measure(context, {
      ...{ name: "TLS 1.3", from: plain.next, joinToken },
      start: () => registry("--tls-cert", certFile, "--tls-key", keyFile),
      authority: readFileSync(authority.caFile, "utf8"),
    });
    return [
      ...figuresOf(plain),
      ...bareFigures(plain, bare),
      commitsFigure(plain, commitsPerSecond),
      ...figuresOf(tls),
      tlsFigure(plain, tls),
    ];
  },
};

/** Which registries to measure, and how to reach them. */
interface Way {
  readonly name: string;
  /** The index of the first node. */
  readonly from: number;
  readonly joinToken: string;
  /** Starts one registry. */
  readonly start: () => Promise<Candidate>;
  readonly authority?: string;
}

interface Measured {
  readonly name: string;
  readonly full: RegistrationOutcome;
  readonly paced: RegistrationOutcome;
  /** The CPU of the registries per registration at full speed. */
  readonly cpuMsEach: number;
  /** The index of the first unused node. */
  readonly next: number;
}

async function measure(context: BenchContext, way: Way): Promise<Measured> {
  const { name, joinToken, authority } = way;
  const registries: Candidate[] = [];
  for (let count = 0; count < REGISTRIES; count += 1) registries.push(await way.start());
  const load = new LoadProcess<RegistrationOrder, RegistrationOutcome>("registration-load");
  context.atEnd(() => load.stop());
  const ports = registries.map(({ port }) => port);
  const shared = { ports, connections: CONNECTIONS, joinToken, ...(authority === undefined ? {} : { authority }) };
  await load.order({ ...shared, from: way.from, count: WARM_UP_NODES });
  const seconds = context.size.durationMs / 1_000;
  const fullFrom = way.from + WARM_UP_NODES;
  const fullCount = Math.round(seconds * AIM_PER_SECOND);
  context.progress(`${name}: registering ${fullCount} nodes`);
  const cpuSeconds = () => registries.reduce((sum, { server }) => sum + server.cpuSeconds(), 0);
  const before = cpuSeconds();
  const full = await load.order({ ...shared, from: fullFrom, count: fullCount });
  const cpuMsEach = ((cpuSeconds() - before) / Math.max(1, full.registered)) * 1_000;
  const pacedCount = Math.round(seconds * PACED_RATE);
  context.progress(`${name}: registering ${PACED_RATE} nodes per second`);
  const pacedFrom = fullFrom + fullCount;
  const paced = await load.order({ ...shared, from: pacedFrom, count: pacedCount, perSecond: PACED_RATE });
  for (const { failed, lastFailure } of [full, paced]) {
    if (failed > 0) context.progress(`${failed} were refused: ${lastFailure}`);
  }
  await load.stop();
  for (const { server } of registries) await server.stop();
  return { name, full, paced, cpuMsEach, next: pacedFrom + pacedCount };
}

const perSecondOf = ({ full }: Measured) => (full.registered / full.elapsedMs) * 1_000;

function bareFigures(plain: Measured, bare: Measured): readonly Figure[] {
  const against = { against: "bare grpc-js", target: "" };
  const p99 = ({ paced }: Measured) => percentile(Float64Array.from(paced.latenciesMs), 0.99);
  const { name } = plain;
  return [
    {
      figure: `registrations per second, ${name}`,
      ...{ measured: perSecondOf(plain), unit: "/s", ...against, compared: perSecondOf(bare) },
    },
    {
      figure: `CPU of a registration, ${name}`,
      ...{ measured: plain.cpuMsEach, unit: "ms", ...against, compared: bare.cpuMsEach },
    },
    {
      figure: `challenge and RegisterNode, ${name}, p99`,
      ...{ measured: p99(plain), unit: "ms", ...against, compared: p99(bare) },
    },
  ];
}

function commitsFigure(plain: Measured, commitsPerSecond: number): Figure {
  const rate = { figure: "registrations per second", measured: perSecondOf(plain), unit: "/s" };
  return { ...rate, against: `bare commits, ${COMMITTERS} concurrent`, compared: commitsPerSecond, target: "" };
}

function tlsFigure(plain: Measured, tls: Measured): Figure {
  const cpu = { figure: "CPU of a registration, TLS 1.3", measured: tls.cpuMsEach, unit: "ms" };
  return { ...cpu, against: "in clear text", compared: plain.cpuMsEach, target: "" };
}

function figuresOf(of: Measured): readonly Figure[] {
  const { name, full, paced } = of;
  const latency = { unit: "ms", against: `aim for p99 at ${PACED_RATE}/s`, compared: AIM_P99_MS };
  const latenciesMs = Float64Array.from(paced.latenciesMs);
  return [
    {
      figure: `registered, ${name}`,
      measured: full.registered + paced.registered,
      unit: "",
      against: "asked for",
      compared: full.registered + full.failed + paced.registered + paced.failed,
      target: "1",
    },
    {
      figure: `registrations per second, ${name}`,
      measured: perSecondOf(of),
      unit: "/s",
      against: "aim",
      compared: AIM_PER_SECOND,
      target: "1 or more",
    },
    {
      figure: `challenge and RegisterNode, ${name}, p50`,
      measured: percentile(latenciesMs, 0.5),
      ...latency,
      target: "",
    },
    {
      figure: `challenge and RegisterNode, ${name}, p99`,
      measured: percentile(latenciesMs, 0.99),
      ...latency,
      target: "1 or less",
    },
  ];
}

/** Measure durable commits of one small row each. Their rate is the maximum of this Postgres without other load. */
async function measureCommits(context: BenchContext, url: string): Promise<number> {
  await withClient(url, (client) => client.query("create table bench_commits (at timestamptz)"));
  const end = performance.now() + Math.min(context.size.durationMs, 3_000);
  const begin = performance.now();
  const commits = await Promise.all(
    Array.from({ length: COMMITTERS }, () =>
      withClient(url, async (client) => {
        let count = 0;
        while (performance.now() < end) {
          await client.query("insert into bench_commits values (now())");
          count += 1;
        }
        return count;
      }),
    ),
  );
  const elapsedMs = performance.now() - begin;
  await withClient(url, (client) => client.query("drop table bench_commits"));
  return (commits.reduce((sum, count) => sum + count, 0) / elapsedMs) * 1_000;
}
