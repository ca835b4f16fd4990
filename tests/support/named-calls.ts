import type { JsonObject } from "@bufbuild/protobuf";

/** What a field of a changing request means. */
export type FieldMeaning =
  /** It names objects that exist. When they do not, the call is refused, or each name has a refusal of its own. */
  | { readonly kind: "name"; readonly missing: string; readonly request: (name: string) => JsonObject }
  /** It names what the call creates, or what only this caller owns: no other object can be meant. */
  | { readonly kind: "create"; readonly request: (name: string) => JsonObject }
  /** It names the node that the caller is, which it proves with its key. */
  | { readonly kind: "own" }
  /** It names no object that the call could change. */
  | { readonly kind: "none" };

const NONE: FieldMeaning = { kind: "none" };
const OWN: FieldMeaning = { kind: "own" };

function names(missing: string, request: (name: string) => JsonObject): FieldMeaning {
  return { kind: "name", missing, request };
}

function creates(request: (name: string) => JsonObject): FieldMeaning {
  return { kind: "create", request };
}

/** What a method needs besides the name. */
const FURTHER: Readonly<Record<string, JsonObject>> = {
  SetNodeLabels: { set: { rack: "r1" } },
  ScaleJob: { count: 1 },
};

const NODE: Readonly<Record<string, FieldMeaning>> = {
  node: names("NODE_NOT_FOUND", (node) => ({ node })),
  selector: names("NODE_NOT_FOUND", (node) => ({ selector: { nodes: [node] } })),
};

/** A webhook as SetWebhook and ApplyState take it. */
const WEBHOOK = { url: "https://receiver.example/hook", paused: true };

/** A job that no node fits. */
function jobNamed(name: string): JsonObject {
  return {
    ...{ name, type: "JOB_TYPE_SERVICE", count: 0, resources: { millicores: 3_000_000 } },
    process: { command: ["serve"] },
  };
}

/** Objects of one name, and of a node of that name, as declared state has them. */
export function declaredObjects(name: string): JsonObject[] {
  return [
    { nodeLabels: { node: name, labels: { probe: "set" } } },
    ...declaredAlone(name),
    { healthPolicy: { scope: { node: name }, values: { infoInterval: "7s" } } },
  ];
}

/** The same, without what needs a node. */
function declaredAlone(name: string): JsonObject[] {
  return [
    { webhook: { name, spec: WEBHOOK } },
    { healthPolicy: { scope: { group: name }, selector: "gpu", priority: 1, values: { infoInterval: "7s" } } },
    { job: { spec: jobNamed(name) } },
  ];
}

/** Fields with these names are never names of objects. */
const TEXTS: Readonly<Record<string, FieldMeaning>> = Object.fromEntries(
  ["reason", "etag", "request_id", "page_token", "description", "fingerprint"].map((field) => [field, NONE]),
);

/** The meaning of fields, by service; a method's own come first. */
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
  // Codes and answers of issuers are secrets, which name nothing.
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
  // Only another replica can call it, and only to pass on a ReportHeartbeat.
  HealthInternalService: { heartbeat: NONE, peer: NONE },
  // Streams of agents: the first frame of one proves which node it is, that of the other has a token for one reading.
  "HealthService.Heartbeat": {
    ...{ hello: NONE, beat: NONE, node_info: NONE, goodbye: NONE, execution_report: NONE, want_specs: NONE },
  },
  "HealthService.ServeLogs": { failure: NONE, failure_message: NONE, times: NONE },
};

/** What a field of a method's request means; undefined for a field that the tables above do not know. */
export function meaningOf(service: string, method: string, field: string): FieldMeaning | undefined {
  return MEANINGS[`${service}.${method}`]?.[field] ?? MEANINGS[service]?.[field] ?? TEXTS[field];
}

/** Further ways in which a method names objects: the alternatives of a field. */
export function alternativesOf(service: string, method: string): readonly (readonly [string, FieldMeaning])[] {
  return Object.entries(MEANINGS[`${service}.${method}`] ?? {}).filter(([field]) => field.includes("."));
}

/** The request of a call that names an object. */
export function requestOf(method: string, { request }: { request(name: string): JsonObject }, name: string) {
  return { ...request(name), ...FURTHER[method] };
}
