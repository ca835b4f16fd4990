import { create } from "@bufbuild/protobuf";
import {
  type Execution,
  type Job,
  type JobOwner,
  JobService,
  type JobVersion,
  ListExecutionsResponseSchema,
  ListJobsResponseSchema,
  ListJobVersionsResponseSchema,
  ListOwnersResponseSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { EXECUTION_STATE_WORDS, JOB_STATE_WORDS, JOB_TYPE_WORDS } from "../choices.ts";
import { PagedActorNames } from "../client/actor-names.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { parseCount, pickWords } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { getNode } from "../nodes/read-nodes.ts";
import { toPlain } from "../output/format.ts";
import { isWide, type ListingOptions, printListing, readPages } from "../output/listing.ts";
import { type Column, optionalCell, stateCell, timeCell } from "../output/table.ts";
import {
  EXECUTION_STATES,
  endWords,
  executionStateWord,
  JOB_STATES,
  JOB_TYPES,
  jobStateWord,
  jobTypeWord,
  updateWords,
} from "./words.ts";

/** The options of `job list`. */
export interface JobListOptions extends ListingOptions {
  readonly states?: string;
  readonly types?: string;
  readonly limit?: string;
}

/** `job list`: list the jobs by name. */
export const jobList: Verb<JobListOptions> = async (invocation) => {
  const { shell, options } = invocation;
  const limit = parseCount("limit", options.limit ?? "0", 0);
  const filter = {
    states: pickWords("states", options.states ?? "", JOB_STATE_WORDS).map((word) => JOB_STATES[word]),
    types: pickWords("types", options.types ?? "", JOB_TYPE_WORDS).map((word) => JOB_TYPES[word]),
  };
  const control = reachControlPlane(shell, options);
  const client = control.client("scheduler", JobService);
  await printListing(invocation, {
    columns: JOB_COLUMNS,
    nameOf: ({ spec }: Job) => spec?.name ?? "",
    pages: readPages(
      (part) => control.attempt("scheduler", "list jobs", () => client.listJobs({ ...filter, ...part })),
      { limit, countOf: ({ jobs }) => jobs.length },
    ),
    itemsOf: ({ jobs }) => jobs,
    whole: (pages) => {
      const answer = create(ListJobsResponseSchema, { nextPageToken: pages.at(-1)?.nextPageToken ?? "" });
      answer.jobs = pages.flatMap(({ jobs }) => jobs);
      return toPlain(ListJobsResponseSchema, answer);
    },
  });
};

type CountName = "ready" | "running" | "pending" | "waiting" | "lost" | "failed" | "completed";

function countColumn(name: CountName, rank: number): Column<Job> {
  return {
    ...{ title: name.toUpperCase(), name, rank },
    cell: ({ executions }) => ({ text: String(executions?.[name] ?? 0) }),
  };
}

const JOB_COLUMNS: readonly Column<Job>[] = [
  { title: "NAME", name: "name", cell: ({ spec }) => ({ text: spec?.name ?? "-" }) },
  { title: "TYPE", name: "type", rank: 6, cell: ({ spec }) => ({ text: jobTypeWord(spec?.type) }) },
  { title: "STATE", name: "state", cell: ({ state }) => stateCell(jobStateWord(state)) },
  { title: "VERSION", name: "version", rank: 7, cell: ({ version }) => ({ text: String(version) }) },
  { title: "WANTED", name: "wanted", rank: 1, cell: ({ wanted }) => ({ text: String(wanted) }) },
  countColumn("ready", 2),
  countColumn("running", 5),
  countColumn("pending", 8),
  countColumn("waiting", 3),
  countColumn("lost", 9),
  countColumn("completed", 10),
  countColumn("failed", 4),
  { title: "UPDATE", name: "update", rank: 11, limit: 40, cell: (job) => optionalCell(updateWords(job)) },
  { title: "MESSAGE", name: "message", rank: 12, limit: 60, cell: ({ message }) => optionalCell(message) },
];

/** The options of `job executions`. */
export interface ExecutionListOptions extends ListingOptions {
  readonly node?: string;
  readonly states?: string;
  readonly limit?: string;
}

/** `job executions [JOB]`: list executions, newest first. */
export const jobExecutions: Verb<ExecutionListOptions> = async (invocation) => {
  const { shell, options, args } = invocation;
  const limit = parseCount("limit", options.limit ?? DEFAULT_LIMIT, 0);
  const words = pickWords("states", options.states ?? "", EXECUTION_STATE_WORDS);
  const control = reachControlPlane(shell, options);
  // Check that the node exists. Otherwise, an unknown node would have an empty list, like a node without work.
  const node = options.node === undefined ? null : await getNode(control, options.node, "find");
  const filter = { job: args[0] ?? "", nodeId: node?.id ?? "", states: words.map((word) => EXECUTION_STATES[word]) };
  const client = control.client("scheduler", JobService);
  await printListing(invocation, {
    columns: EXECUTION_COLUMNS,
    nameOf: ({ id }: Execution) => id,
    pages: readPages(
      (part) => control.attempt("scheduler", "list executions", () => client.listExecutions({ ...filter, ...part })),
      { limit, countOf: ({ executions }) => executions.length },
    ),
    itemsOf: ({ executions }) => executions,
    whole: (pages) => {
      const answer = create(ListExecutionsResponseSchema, { nextPageToken: pages.at(-1)?.nextPageToken ?? "" });
      answer.executions = pages.flatMap(({ executions }) => executions);
      return toPlain(ListExecutionsResponseSchema, answer);
    },
  });
};

const DEFAULT_LIMIT = "100";

/** The columns of executions. */
export const EXECUTION_COLUMNS: readonly Column<Execution>[] = [
  { title: "ID", name: "id", cell: ({ id }) => ({ text: id }) },
  { title: "JOB", name: "job", rank: 2, cell: ({ job }) => ({ text: job }) },
  { title: "VERSION", name: "version", rank: 7, cell: ({ version }) => ({ text: String(version) }) },
  { title: "INDEX", name: "index", rank: 6, cell: ({ index }) => ({ text: String(index) }) },
  { title: "NODE", name: "node", cell: ({ nodeId }) => ({ text: nodeId }) },
  { title: "STATE", name: "state", cell: ({ state }) => stateCell(executionStateWord(state)) },
  { title: "PORTS", name: "ports", rank: 5, limit: 32, cell: ({ ports }) => optionalCell(portWords(ports)) },
  { title: "PLACED", name: "placed", rank: 4, cell: ({ createTime }) => timeCell(createTime) },
  { title: "ENDED", name: "ended", rank: 8, cell: ({ endTime }) => timeCell(endTime) },
  { title: "DETAIL", name: "detail", rank: 3, limit: 60, cell: (execution) => optionalCell(endWords(execution)) },
];

function portWords(ports: Execution["ports"]): string {
  return Object.entries(ports)
    .map(([label, port]) => `${label}=${port}`)
    .join(",");
}

/** `job history JOB`: list the versions of a job, newest first. */
export const jobHistory: Verb<ListingOptions & { readonly limit?: string }> = async (invocation) => {
  const { shell, options, args } = invocation;
  const [name = ""] = args;
  const limit = parseCount("limit", options.limit ?? "0", 0);
  const control = reachControlPlane(shell, options);
  const client = control.client("scheduler", JobService);
  const names = new PagedActorNames(control);
  await printListing(invocation, {
    columns: versionColumns(names, isWide(options)),
    nameOf: ({ version }: JobVersion) => String(version),
    pages: readPages(
      (part) =>
        control.attempt("scheduler", `list the versions of job ${name}`, () =>
          client.listJobVersions({ name, ...part }),
        ),
      { limit, size: MOST_VERSIONS, countOf: ({ versions }) => versions.length },
    ),
    itemsOf: async ({ versions }) => {
      await names.learn(versions.map(({ actor }) => actor));
      return versions;
    },
    whole: (pages) => {
      const answer = create(ListJobVersionsResponseSchema, { nextPageToken: pages.at(-1)?.nextPageToken ?? "" });
      answer.versions = pages.flatMap(({ versions }) => versions);
      return toPlain(ListJobVersionsResponseSchema, answer);
    },
  });
};

/** Maximum number of versions in one call. */
const MOST_VERSIONS = 100;

const versionColumns = (names: PagedActorNames, wide: boolean): readonly Column<JobVersion>[] => [
  { title: "VERSION", name: "version", cell: ({ version }) => ({ text: String(version) }) },
  { title: "SUBMITTED", name: "submitted", cell: ({ createTime }) => timeCell(createTime) },
  { title: "ACTOR", name: "actor", limit: 32, rank: 2, cell: ({ actor }) => names.cell(actor, wide) },
  { title: "COUNT", name: "count", rank: 3, cell: ({ spec }) => ({ text: String(spec?.count ?? 0) }) },
  { title: "READY", name: "ready", cell: ({ readyTime }) => timeCell(readyTime) },
  {
    ...{ title: "COPY OF", name: "copy-of", rank: 4 },
    cell: ({ version, origin }) => optionalCell(origin === version || origin === 0 ? "" : String(origin)),
  },
  { title: "REASON", name: "reason", limit: 60, rank: 1, cell: ({ reason }) => optionalCell(reason) },
];

/** `job owners`: list the owners of jobs and the resources that they use. */
export const jobOwners: Verb<ListingOptions & { readonly limit?: string }> = async (invocation) => {
  const { shell, options } = invocation;
  const limit = parseCount("limit", options.limit ?? "0", 0);
  const control = reachControlPlane(shell, options);
  const client = control.client("scheduler", JobService);
  const names = new PagedActorNames(control);
  await printListing(invocation, {
    columns: ownerColumns(names, isWide(options)),
    nameOf: ({ owner }: JobOwner) => owner,
    pages: readPages((part) => control.attempt("scheduler", "list the owners of jobs", () => client.listOwners(part)), {
      limit,
      countOf: ({ owners }) => owners.length,
    }),
    itemsOf: async ({ owners }) => {
      await names.learn(owners.map(({ owner }) => owner));
      return owners;
    },
    whole: (pages) => {
      const last = pages.at(-1);
      const quota = last?.quota;
      const parts = { nextPageToken: last?.nextPageToken ?? "", ...(quota === undefined ? {} : { quota }) };
      const answer = create(ListOwnersResponseSchema, parts);
      answer.owners = pages.flatMap(({ owners }) => owners);
      return toPlain(ListOwnersResponseSchema, answer);
    },
  });
};

const ownerColumns = (names: PagedActorNames, wide: boolean): readonly Column<JobOwner>[] => [
  { title: "OWNER", name: "owner", cell: ({ owner }) => names.cell(owner, wide) },
  { title: "JOBS", name: "jobs", rank: 1, cell: ({ jobs }) => ({ text: String(jobs) }) },
  { title: "EXECUTIONS", name: "executions", rank: 2, cell: ({ executions }) => ({ text: String(executions) }) },
  { title: "CORES", name: "cores", rank: 3, cell: ({ millicores }) => ({ text: String(Number(millicores) / 1_000) }) },
];
