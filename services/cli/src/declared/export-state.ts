import { create, toBinary } from "@bufbuild/protobuf";
import {
  type DeclaredObject,
  DeclaredObjectSchema,
  DeclaredStateService,
} from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import { HealthPolicyService } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { WebhookService } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { LabelTier, NodeType } from "@rollcall/api/rollcall/node/v1/node_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { JobService, JobState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { DECLARED_KIND_WORDS } from "../choices.ts";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { Failure, pickWords } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { formatPlain, outputFormat, type Plain, writePlain } from "../output/format.ts";
import { type PageRange, readPages } from "../output/listing.ts";
import { printable } from "../output/text.ts";
import { canBeWritten, namesOf, writeObject } from "./write-objects.ts";

/** The options of `export`. */
export interface ExportOptions {
  readonly owner?: string;
  readonly kinds?: string;
}

type Kind = (typeof DECLARED_KIND_WORDS)[number];

/** `export`: write the current objects in the format of files for `apply`. */
export const exportState: Verb<ExportOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ["yaml", "json"]);
  const chosen = pickWords("kinds", options.kinds ?? "", DECLARED_KIND_WORDS);
  const control = reachControlPlane(shell, options);
  const { owner } = options;
  const found: DeclaredObject[] = [];
  for (const kind of DECLARED_KIND_WORDS) {
    if (chosen.length > 0 && !chosen.includes(kind)) continue;
    found.push(...(await READERS[kind](control, owner !== undefined)));
  }
  const objects = owner === undefined ? found : await ownedBy(control, owner, found);
  const [whole, partly] = [objects.filter(canBeWritten), objects.filter((object) => !canBeWritten(object))];
  const documents: readonly Plain[] = [...(owner === undefined ? [] : [{ owner }]), ...whole.map(writeObject)];
  if (format === "json") await writePlain(shell, "json", documents);
  else for (const document of documents) shell.out.write(`---\n${await formatPlain("yaml", document)}`);
  if (partly.length === 0) return;
  const names = partly.map((object) => printable(namesOf(object).join(", "))).join(", ");
  throw new Failure(`left out of the export, because a file cannot express them: ${names}`);
};

/** Read all objects of a kind by name, whatever their owner. */
const READERS: Readonly<
  Record<Kind, (control: ControlPlane, isOfOwner: boolean) => Promise<readonly DeclaredObject[]>>
> = { policies: readPolicies, labels: readLabels, webhooks: readWebhooks, jobs: readJobs };

async function readPolicies(control: ControlPlane): Promise<readonly DeclaredObject[]> {
  const client = control.client("admin", HealthPolicyService);
  const read = (part: PageRange) => control.attempt("admin", "list policies", () => client.listHealthPolicies(part));
  const found: DeclaredObject[] = [];
  for await (const { policies } of readPages(read, { countOf: (page) => page.policies.length })) {
    for (const { scope, selector, priority, values } of policies) {
      const value = { selector, priority, ...(scope && { scope }), ...(values && { values }) };
      found.push(create(DeclaredObjectSchema, { object: { case: "healthPolicy", value } }));
    }
  }
  return found;
}

async function readLabels(control: ControlPlane): Promise<readonly DeclaredObject[]> {
  const client = control.client("registry", RegistryService);
  const request = { types: [NodeType.COMPUTE], readMask: { paths: ["labels"] } };
  const read = (part: PageRange) =>
    control.attempt("registry", "list nodes", () => client.listNodes({ ...request, ...part }));
  const found: DeclaredObject[] = [];
  for await (const { nodes } of readPages(read, { countOf: (page) => page.nodes.length })) {
    for (const { id: node, labels } of nodes) {
      // Take the labels of the operator tier. No tier overrides them, so the list includes all labels that operators
      // set.
      const set = labels.filter(({ tier }) => tier === LabelTier.OPERATOR).map(({ key, value }) => [key, value]);
      const value = { node, labels: Object.fromEntries(set) };
      if (set.length > 0) found.push(create(DeclaredObjectSchema, { object: { case: "nodeLabels", value } }));
    }
  }
  return found;
}

async function readWebhooks(control: ControlPlane): Promise<readonly DeclaredObject[]> {
  const client = control.client("admin", WebhookService);
  const read = (part: PageRange) => control.attempt("admin", "list webhooks", () => client.listWebhooks(part));
  const found: DeclaredObject[] = [];
  for await (const { webhooks } of readPages(read, { countOf: (page) => page.webhooks.length })) {
    for (const { name, spec } of webhooks) {
      const value = { name, ...(spec && { spec }) };
      found.push(create(DeclaredObjectSchema, { object: { case: "webhook", value } }));
    }
  }
  return found;
}

/**
 * Read the jobs to export. Ended jobs are left out, because applying the file to another control plane would run them
 * again. An export of one owner includes them, because that owner still declares them.
 */
async function readJobs(control: ControlPlane, isOfOwner: boolean): Promise<readonly DeclaredObject[]> {
  const client = control.client("scheduler", JobService);
  const states = [JobState.ACTIVE, ...(isOfOwner ? [JobState.COMPLETED, JobState.FAILED] : [])];
  const read = (part: PageRange) =>
    control.attempt("scheduler", "list jobs", () => client.listJobs({ states, ...part }));
  const found: DeclaredObject[] = [];
  for await (const { jobs } of readPages(read, { countOf: (page) => page.jobs.length })) {
    for (const { spec } of jobs) {
      if (spec !== undefined) found.push(create(DeclaredObjectSchema, { object: { case: "job", value: { spec } } }));
    }
  }
  return found;
}

/**
 * Filter objects, and single labels of nodes, by the owner that applied them. The owners are read from a plan of the
 * current objects.
 */
async function ownedBy(
  control: ControlPlane,
  owner: string,
  objects: readonly DeclaredObject[],
): Promise<readonly DeclaredObject[]> {
  const client = control.client("admin", DeclaredStateService);
  const owned = new Set<string>();
  for (const part of partsOf(objects)) {
    const { changes } = await control.attempt("admin", "read owners", () => client.planState({ objects: [...part] }));
    for (const { object, formerOwner } of changes) if (formerOwner === owner) owned.add(object);
  }
  return objects.flatMap((object) => {
    if (object.object.case !== "nodeLabels") return namesOf(object).some((name) => owned.has(name)) ? [object] : [];
    const { node, labels } = object.object.value;
    const kept = Object.entries(labels).filter(([key]) => owned.has(`node-label/${node}/${key}`));
    const value = { node, labels: Object.fromEntries(kept) };
    return kept.length === 0 ? [] : [create(DeclaredObjectSchema, { object: { case: "nodeLabels", value } })];
  });
}

/** Split objects into parts that one call accepts. A call limits the number of objects, of names and of bytes. */
function* partsOf(objects: readonly DeclaredObject[]): Generator<readonly DeclaredObject[]> {
  let part: DeclaredObject[] = [];
  let [names, bytes] = [0, 0];
  for (const object of objects) {
    const [more, size] = [namesOf(object).length, toBinary(DeclaredObjectSchema, object).length];
    if (part.length > 0 && (part.length >= MOST_OBJECTS || names + more > MOST_NAMES || bytes + size > MOST_BYTES)) {
      yield part;
      part = [];
      [names, bytes] = [0, 0];
    }
    part.push(object);
    names += more;
    bytes += size;
  }
  if (part.length > 0) yield part;
}

const MOST_OBJECTS = 500;
const MOST_NAMES = 2_000;
const MOST_BYTES = 512 * 1024;
