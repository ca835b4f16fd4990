import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter, MethodImpl } from "@connectrpc/connect";
import {
  AgentTrustSchema,
  AgentVersionSchema,
  DiagnosisService,
  DuplicatedNodeSchema,
  GetDiagnosisResponseSchema,
  ProcessFactsSchema,
  RecordFactsSchema,
  StandbyFactsSchema,
  WaitFactsSchema,
} from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { NodeTrustSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { definePolicies, type PolicyTable } from "@rollcall/rpc";
import {
  type AgentTrustFacts,
  countAgentTrust,
  countAgentVersions,
  listDuplicatedNodes,
  listHealthReplicas,
  listProcessReports,
  listStatementWaits,
  listUncontainedNodes,
  type ProcessReport,
  type RecordFacts,
  readRecordFacts,
  recordTimeMs,
  type Standby,
  type StatementWait,
} from "@rollcall/store";
import type { AdminServices } from "../admin-services.ts";

/** Who may ask how the deployment is: it tells addresses and versions, which help an attacker too. */
export const DIAGNOSIS_POLICIES: PolicyTable = definePolicies(DiagnosisService, {
  getDiagnosis: { caller: "admin", deadlineMs: 20_000, idempotent: true },
});

/** Serve the facts about the deployment. */
export function routeDiagnosis(router: ConnectRouter, services: AdminServices): void {
  router.service(DiagnosisService, { getDiagnosis: getDiagnosis(services) });
}

function getDiagnosis(services: AdminServices): MethodImpl<typeof DiagnosisService.method.getDiagnosis> {
  const { store, clock } = services;
  return async () => {
    const { db } = store;
    const unanswered: string[] = [];
    // Whoever asks looks for what is slow: a table that is locked must not keep the rest from being told.
    const within = async <T>(field: string, reading: Promise<T>, otherwise: T, ms = PART_WITHIN_MS): Promise<T> => {
      const answered = new AbortController();
      const late = clock.sleep(ms, answered.signal).then(
        () => {
          unanswered.push(field);
          return otherwise;
        },
        () => otherwise,
      );
      // A reading that is late and then fails has no caller any more.
      reading.catch(() => {});
      return Promise.race([reading, late]).finally(() => answered.abort());
    };
    const [latencyMs, facts, reports, versions, replicas, duplicated, uncontained, trust] = await Promise.all([
      within("record.latency", measureLatency(services), PART_WITHIN_MS),
      within("record", readRecordFacts(db), null),
      within("processes", listProcessReports(db), []),
      within("agent_versions", countAgentVersions(db), []),
      within("agent_endpoints", listHealthReplicas(db), []),
      within("duplicated_nodes", listDuplicatedNodes(db), []),
      within("uncontained_nodes", listUncontainedNodes(db), []),
      within("agent_trust", countAgentTrust(db), []),
    ]);
    // Last: what kept one of these waiting is then seen to wait.
    const waits = await within("record.waits", listStatementWaits(db), [], WAITS_WITHIN_MS);
    return create(GetDiagnosisResponseSchema, {
      time: timestampFromMs(clock.wallMs()),
      ...(facts === null ? {} : { record: recordToProto(facts, latencyMs, waits) }),
      unanswered,
      processes: reports.map(processToProto),
      agentVersions: versions.map((it) => create(AgentVersionSchema, it)),
      agentEndpoints: [...new Set(replicas.map(({ agentEndpoint }) => agentEndpoint))],
      duplicatedNodes: duplicated.map(({ nodeId, addresses }) =>
        create(DuplicatedNodeSchema, { nodeId, addresses: [...addresses] }),
      ),
      uncontainedNodes: [...uncontained],
      agentTrust: trust.map(trustToProto),
    });
  };
}

/** Together shorter than the method's deadline. */
const PART_WITHIN_MS = 6_000;
const WAITS_WITHIN_MS = 3_000;
/** One answer may have waited for a connection. */
const ASKED = 3;
/** No wait for a connection lasts so long where nothing is slow: one answer is enough then. */
const SLOW_MS = 1_000;

/** The time of the fastest of some answers to the simplest question. */
async function measureLatency({ store, clock }: AdminServices): Promise<number> {
  let fastestMs = Number.POSITIVE_INFINITY;
  for (let time = 0; time < ASKED; time += 1) {
    const askedAtMs = clock.nowMs();
    await recordTimeMs(store.db);
    fastestMs = Math.min(fastestMs, clock.nowMs() - askedAtMs);
    if (fastestMs > SLOW_MS) break;
  }
  return fastestMs;
}

function recordToProto(
  { isStandby, standbys, settings, ...facts }: RecordFacts,
  latencyMs: number,
  waits: readonly StatementWait[],
) {
  return create(RecordFactsSchema, {
    ...facts,
    settings: { ...settings },
    standby: isStandby,
    latency: durationFromMs(Math.round(latencyMs)),
    standbysTold: standbys !== null,
    standbys: (standbys ?? []).map(standbyToProto),
    waits: waits.map(({ longestMs, ...wait }) =>
      create(WaitFactsSchema, { ...wait, longest: durationFromMs(Math.round(longestMs)) }),
    ),
  });
}

function standbyToProto({ name, address, state, sync, behindBytes, behindMs }: Standby) {
  return create(StandbyFactsSchema, {
    ...{ name, address, state, syncState: sync },
    behindBytes: behindBytes === null || behindBytes < 0n ? 0n : behindBytes,
    ...(behindMs === null ? {} : { behind: durationFromMs(Math.round(behindMs)) }),
  });
}

function trustToProto({ trust, nodes, nodeIds }: AgentTrustFacts) {
  return create(AgentTrustSchema, {
    ...(trust === null ? {} : { trust: fromJson(NodeTrustSchema, trust as JsonValue, { ignoreUnknownFields: true }) }),
    nodes,
    nodeIds: [...nodeIds],
  });
}

function processToProto({ instance, service, host, facts, ageMs }: ProcessReport) {
  const { certificateEndsAtMs, natsConnected } = facts;
  return create(ProcessFactsSchema, {
    ...{ instance, service, host, version: facts.version, nodeVersion: facts.nodeVersion },
    clockAhead: durationFromMs(Math.round(facts.clockAheadMs)),
    recordLatency: durationFromMs(Math.round(facts.recordLatencyMs)),
    openFiles: facts.openFiles ?? 0,
    openFilesLimit: BigInt(facts.openFilesLimit ?? 0),
    ...(certificateEndsAtMs === null ? {} : { certificateExpireTime: timestampFromMs(certificateEndsAtMs) }),
    natsConfigured: natsConnected !== null,
    natsConnected: natsConnected === true,
    feedLag: durationFromMs(Math.round(facts.feedLagMs)),
    age: durationFromMs(Math.max(0, Math.round(ageMs))),
    lacksNotifications: facts.lacksNotifications,
    authorities: [...(facts.authorities ?? [])],
    certificateAuthority: facts.certificateAuthority ?? "",
    ...(facts.callsWaitingMs === 0 ? {} : { callsWaiting: durationFromMs(Math.round(facts.callsWaitingMs)) }),
  });
}
