import type { ConnectError } from "@connectrpc/connect";
import { type Refusals, refusalsText } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";

/** The job wants no executions. */
export function jobCountIsZero(name: string): ConnectError {
  const text = `job ${name} has a count of 0, so that what it adopts would be stopped: scale it first`;
  return refuse("JOB_COUNT_IS_ZERO", text, { metadata: { job: name }, subject: name });
}

/** No node fits a job that does not wait for one. */
export function fitsNowhere(name: string, why: Refusals): ConnectError {
  const metadata = Object.fromEntries(why.counts.map(({ reason, nodes }) => [reason, String(nodes)]));
  const text = `no node fits job ${name}, and it has no queue timeout: ${refusalsText(why)}`;
  return refuse("JOB_FITS_NOWHERE", text, {
    metadata: { job: name, ...metadata },
  });
}
