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
  listUncontainedNodes,
  type ProcessReport,
  type RecordFacts,
  readRecordFacts,
  recordTimeMs,
  type Standby,
} from "@rollcall/store";
import type { AdminServices } from "../admin-services.ts";

/** Who may ask how the deployment is: it tells addresses and versions, which help an attacker too. */
export const DIAGNOSIS_POLICIES: PolicyTable = definePolicies(DiagnosisService, {
  getDiagnosis: { caller: "admin", deadlineMs: 10_000, idempotent: true },
});

/** Serve the facts about the deployment. */
export function routeDiagnosis(router: ConnectRouter, services: AdminServices): void {
  router.service(DiagnosisService, { getDiagnosis: getDiagnosis(services) });
}

function getDiagnosis(services: AdminServices): MethodImpl<typeof DiagnosisService.method.getDiagnosis> {
  const { store, clock } = services;
  return async () => {
    const { db } = store;
    const latencyMs = await measureLatency(services);
    const facts = await readRecordFacts(db);
    const [reports, versions, replicas, duplicated, uncontained, trust] = await Promise.all([
      listProcessReports(db),
      countAgentVersions(db),
      listHealthReplicas(db),
      listDuplicatedNodes(db),
      listUncontainedNodes(db),
      countAgentTrust(db),
    ]);
    return create(GetDiagnosisResponseSchema, {
      time: timestampFromMs(clock.wallMs()),
      record: recordToProto(facts, latencyMs),
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

/** One answer may have waited for a connection. */
const ASKED = 3;

/** The time of the fastest of some answers to the simplest question. */
async function measureLatency({ store, clock }: AdminServices): Promise<number> {
  let fastestMs = Number.POSITIVE_INFINITY;
  for (let time = 0; time < ASKED; time += 1) {
    const askedAtMs = clock.nowMs();
    await recordTimeMs(store.db);
    fastestMs = Math.min(fastestMs, clock.nowMs() - askedAtMs);
  }
  return fastestMs;
}

function recordToProto({ isStandby, standbys, settings, ...facts }: RecordFacts, latencyMs: number) {
  return create(RecordFactsSchema, {
    ...facts,
    settings: { ...settings },
    standby: isStandby,
    latency: durationFromMs(Math.round(latencyMs)),
    standbysTold: standbys !== null,
    standbys: (standbys ?? []).map(standbyToProto),
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
  });
}
