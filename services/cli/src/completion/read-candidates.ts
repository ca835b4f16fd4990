import { AccessService } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { BrakeService } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import { HealthPolicyService } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { JoinTokenService } from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { WebhookService } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { SHELL_WORDS } from "../choices.ts";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { chooseContext } from "../contexts/choose-context.ts";
import { readContexts } from "../contexts/context-file.ts";
import { readNodes } from "../nodes/read-nodes.ts";
import { parseSelection } from "../nodes/selection.ts";
import type { Shell } from "../shell.ts";

/** A completion of the word under the cursor. */
export interface Candidate {
  readonly word: string;
  readonly description: string;
}

/** A kind of names that can be completed. */
export type Source =
  | "node"
  | "label"
  | "job"
  | "job-version"
  | "execution"
  | "context"
  | "shell"
  | "join-token"
  | "access-token"
  | "actor"
  | "method"
  | "policy-group"
  | "brake-group"
  | "webhook";

/** What the user has typed: the start of the word, and the arguments before it. */
interface Given {
  readonly typed: string;
  readonly earlier: readonly string[];
}

/** Reads the names of a kind; empty if the control plane does not respond quickly. */
export type ReadCandidates = (source: Source, given: Given) => Promise<readonly Candidate[]>;

/** Time limit of a completion's calls. It is short, because the user has pressed the tab key and is waiting. */
const TIMEOUT = "1500ms";
/** Maximum number of objects to read. */
const MOST_READ = 1000;
const PART = { pageSize: MOST_READ };

/** Read names for completion as this user. */
export function candidateReader(shell: Shell): ReadCandidates {
  return async (source, given) => {
    try {
      if (source === "shell") return SHELL_WORDS.map((word) => ({ word, description: "" }));
      if (source === "context") {
        return (await readContexts(shell)).contexts.map(({ name }) => ({ word: name, description: "context" }));
      }
      const chosenContext = await chooseContext(shell, {});
      const control = reachControlPlane(shell, { timeout: TIMEOUT, color: false, chosenContext });
      return await READERS[source](control, given);
    } catch {
      // Offer nothing, because the output of a failed completion would appear in the user's command line.
      return [];
    }
  };
}

type Reader = (control: ControlPlane, given: Given) => Promise<readonly Candidate[]>;

const READERS: Readonly<Record<Exclude<Source, "shell" | "context">, Reader>> = {
  node: async (control, { typed }) =>
    (await nodesOf(control, typed)).map(({ id }) => ({ word: id, description: "node" })),
  label: async (control) => {
    const labels = (await nodesOf(control, "")).flatMap(({ labels: of }) => of);
    const words = new Set(labels.map(({ key, value }) => `${key}=${value}`));
    return [...words].sort().map((word) => ({ word, description: "label" }));
  },
  job: async (control) => {
    const { jobs } = await control.client("scheduler", JobService).listJobs(PART);
    return jobs.flatMap(({ spec }) => (spec === undefined ? [] : [{ word: spec.name, description: "job" }]));
  },
  "job-version": async (control, { earlier: [name = ""] }) => {
    const { versions } = await control.client("scheduler", JobService).listJobVersions({ name });
    return versions.map(({ version, reason }) => ({ word: String(version), description: reason || "version" }));
  },
  // The newest executions are the ones that users stop, adopt and read.
  execution: async (control) => {
    const { executions } = await control.client("scheduler", JobService).listExecutions(PART);
    return executions.map(({ id }) => ({ word: id, description: "execution" }));
  },
  "join-token": async (control) => {
    const { tokens } = await control.client("admin", JoinTokenService).listJoinTokens(PART);
    return tokens.map(({ id, description }) => ({ word: id, description: description || "join token" }));
  },
  "access-token": async (control) => (await tokensOf(control)).map(({ id, name }) => ({ word: id, description: name })),
  actor: async (control) => {
    const tokens = (await tokensOf(control)).map(({ id, name }) => ({ word: `token:${id}`, description: name }));
    return [...tokens, { word: "system", description: "the control plane" }];
  },
  method: async () =>
    [AdminService, AccessService, JoinTokenService, HealthPolicyService, BrakeService, WebhookService, JobService]
      .flatMap(({ methods }) => methods)
      .map(({ name }) => ({ word: name, description: "method" })),
  "policy-group": async (control) => {
    const { policies } = await control.client("admin", HealthPolicyService).listHealthPolicies(PART);
    return policies.flatMap(({ scope, selector }) =>
      scope?.scope.case === "group" ? [{ word: scope.scope.value, description: selector }] : [],
    );
  },
  "brake-group": async (control) => {
    const { brakes } = await control.client("admin", BrakeService).getBrake({});
    return brakes.map(({ group }) => ({ word: group, description: "group" }));
  },
  webhook: async (control) => {
    const { webhooks } = await control.client("admin", WebhookService).listWebhooks({});
    return webhooks.map(({ name, spec }) => ({ word: name, description: spec?.description || "webhook" }));
  },
};

/** The nodes that contain the typed text. */
async function nodesOf(control: ControlPlane, typed: string) {
  const registry = control.client("registry", RegistryService);
  const found = [];
  for await (const { nodes } of readNodes(control, registry, parseSelection({ search: typed }), { limit: MOST_READ })) {
    found.push(...nodes);
  }
  return found;
}

async function tokensOf(control: ControlPlane) {
  const { accessTokens } = await control.client("admin", AccessService).listAccessTokens({ pageSize: 500 });
  return accessTokens;
}
