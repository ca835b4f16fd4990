import type { JsonObject } from "@bufbuild/protobuf";

/** The meaning of a field in a request that changes something. */
export type FieldMeaning =
  /**
   * The field contains names of objects that must exist. If they do not exist, the call is refused, or each name gets
   * a separate refusal.
   */
  | { readonly kind: "name"; readonly missing: string; readonly request: (name: string) => JsonObject }
  /**
   * The field contains the name of an object that the call creates, or that belongs only to this caller. It cannot
   * refer to another object.
   */
  | { readonly kind: "create"; readonly request: (name: string) => JsonObject }
  /** The field contains the id of the calling node, which proves its identity with its key. */
  | { readonly kind: "own" }
  /** The field contains no name of an object that the call could change. */
  | { readonly kind: "none" };

const NONE: FieldMeaning = { kind: "none" };
const OWN: FieldMeaning = { kind: "own" };

function names(missing: string, request: (name: string) => JsonObject): FieldMeaning {
  return { kind: "name", missing, request };
}

function creates(request: (name: string) => JsonObject): FieldMeaning {
  return { kind: "create", request };
}

/** Other fields that a method requires, keyed by method. */
const FURTHER: Readonly<Record<string, JsonObject>> = {
  SetNodeLabels: { set: { rack: "r1" } },
  ScaleJob: { count: 1 },
};

const NODE: Readonly<Record<string, FieldMeaning>> = {
  node: names("NODE_NOT_FOUND", (node) => ({ node })),
  selector: names("NODE_NOT_FOUND", (node) => ({ selector: { nodes: [node] } })),
};

/** A webhook for SetWebhook and ApplyState. */
const WEBHOOK = { url: "https://receiver.example/hook", paused: true };

/** A job that fits no node. */
function jobNamed(name: string): JsonObject {
  return {
    ...{ name, type: "JOB_TYPE_SERVICE", count: 1, resources: { millicores: 3_000_000 } },
    process: { command: ["serve"] },
  };
}

/**
 * Return declared state with one object of each kind under one name, including the objects of a node with that name.
 */
export function declaredObjects(name: string): JsonObject[] {
  return [
    { nodeLabels: { node: name, labels: { probe: "set" } } },
    ...declaredAlone(name),
    { healthPolicy: { scope: { node: name }, values: { infoInterval: "7s" } } },
  ];
}

/** Return the same state without objects that need a node. */
function declaredAlone(name: string): JsonObject[] {
  return [
    { webhook: { name, spec: WEBHOOK } },
    { healthPolicy: { scope: { group: name }, selector: "gpu", priority: 1, values: { infoInterval: "7s" } } },
    { job: { spec: jobNamed(name) } },
  ];
}

/** The names of fields that never name objects. */
const TEXTS: Readonly<Record<string, FieldMeaning>> = Object.fromEntries(
  ["reason", "etag", "request_id", "page_token", "description", "fingerprint"].map((field) => [field, NONE]),
);

/** The meanings of fields, keyed by service or method. The entries for a method take precedence. */
const MEANINGS: Readonly<Record<string, Readonly<Record<string, FieldMeaning>>>> = {
  AdminService: NODE,
  "AdminService.BanNode": { node_id: creates((nodeId) => ({ nodeId })) },
  "AdminService.SetNodeLabels": { set: NONE, remove: NONE },
  "AccessService.CreateAccessToken": { name: creates((name) => ({ name, role: "ROLE_VIEWER" })) },
  "AccessService.RevokeAccessToken": { id: names("ACCESS_TOKEN_NOT_FOUND", (id) => ({ id })) },
  "AuditService.PruneAuditLog": { through: NONE },
  BrakeService: { group: names("BRAKE_GROUP_NOT_FOUND", (group) => ({ group })) },
  "DeclaredStateService.ApplyState": {
    objects: names("INVALID_DECLARED_STATE", (name) => ({
      objects: [{ nodeLabels: { node: name, labels: { rack: "r1" } } }],
    })),
    owner: creates((owner) => ({ owner, prune: true, takeOver: false, objects: [] })),
    confirmed: NONE,
  },
  "HealthPolicyService.SetHealthPolicy": {
    scope: names("NODE_NOT_FOUND", (node) => ({ scope: { node }, values: { infoInterval: "9s" } })),
    "scope.group": creates((group) => ({ scope: { group }, selector: "gpu", values: { infoInterval: "9s" } })),
    ...{ selector: NONE, values: NONE },
  },
  "HealthPolicyService.DeleteHealthPolicy": {
    scope: names("NODE_NOT_FOUND", (node) => ({ scope: { node } })),
    "scope.group": names("HEALTH_POLICY_NOT_FOUND", (group) => ({ scope: { group } })),
  },
  "JoinTokenService.CreateJoinToken": {
    group: creates((group) => ({ group })),
    node_name_pattern: creates((nodeNamePattern) => ({ nodeNamePattern })),
    labels: NONE,
  },
  "JoinTokenService.RevokeJoinToken": { id: names("JOIN_TOKEN_NOT_FOUND", (id) => ({ id })) },
  // The codes and responses of issuers are secrets and name nothing.
  ConsoleService: { code: NONE, access_token: NONE, oidc: NONE, issuer: NONE },
  WebhookService: { name: names("WEBHOOK_NOT_FOUND", (name) => ({ name })) },
  "WebhookService.SetWebhook": { name: creates((name) => ({ name, spec: WEBHOOK })), spec: NONE },
  JobService: {
    name: names("JOB_NOT_FOUND", (name) => ({ name })),
    execution: names("EXECUTION_NOT_FOUND", (execution) => ({ execution })),
  },
  "JobService.SubmitJob": { spec: creates((name) => ({ spec: { ...jobNamed(name), queueTimeout: "60s" } })) },
  RegistryService: { node_id: OWN, proof: NONE, info: NONE, join_token: NONE },
  "HealthQueryService.ReportHeartbeat": { node_id: OWN, open: NONE, beat: NONE, goodbye: NONE },
  // The service can be called only by another replica, and only to forward a ReportHeartbeat.
  HealthInternalService: { heartbeat: NONE, peer: NONE },
  // Agents' streams. The first frame of Heartbeat proves which node it comes from, and the first frame of ServeLogs
  // contains a token for one read.
  "HealthService.Heartbeat": {
    ...{ hello: NONE, beat: NONE, node_info: NONE, goodbye: NONE, execution_report: NONE, want_specs: NONE },
  },
  "HealthService.ServeLogs": { failure: NONE, failure_message: NONE, times: NONE },
};

/** Return the meaning of a field in a method's request; undefined if no table above contains it. */
export function meaningOf(service: string, method: string, field: string): FieldMeaning | undefined {
  return MEANINGS[`${service}.${method}`]?.[field] ?? MEANINGS[service]?.[field] ?? TEXTS[field];
}

/** Return the other ways for a method to name objects, which are the other cases of a oneof. */
export function alternativesOf(service: string, method: string): readonly (readonly [string, FieldMeaning])[] {
  return Object.entries(MEANINGS[`${service}.${method}`] ?? {}).filter(([field]) => field.includes("."));
}

/** Create the request of a call that names an object. */
export function requestOf(method: string, { request }: { request(name: string): JsonObject }, name: string) {
  return { ...request(name), ...FURTHER[method] };
}
