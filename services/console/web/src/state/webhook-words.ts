import { command } from "./cli-command.ts";

/** The values of the webhook form. */
export interface WebhookWish {
  readonly url: string;
  /** Event types; empty means all. */
  readonly types: readonly string[];
  readonly selector: string;
  readonly description: string;
}

/** The error in the name of a new webhook; undefined for none. An existing name would replace that webhook. */
export function newNameProblem(name: string, taken: readonly string[]): string | undefined {
  if (name === "") return undefined;
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) return "lowercase letters, digits and -";
  return taken.includes(name) ? "already exists: edit it in the list, or choose another name" : undefined;
}

/** Whether setting a webhook resumes deliveries that were paused automatically. */
export function resumesWhenSet(spec: { readonly paused: boolean } | undefined, pauseReason: string): boolean {
  return pauseReason !== "" && spec?.paused !== true;
}

/**
 * The command that sets a webhook. Flags that are left out change nothing, so cleared fields are passed as empty.
 * `before` is null for a new webhook.
 */
export function webhookCommand(name: string, wish: WebhookWish, before: WebhookWish | null, rotate: boolean): string {
  const option = (flag: string, value: string, was: string | undefined, none = "") =>
    value !== "" ? [flag, value] : (was ?? "") === "" ? [] : [flag, none];
  return command(
    ...["webhook", "set", name],
    ...option("--url", wish.url, before?.url),
    ...option("--type", wish.types.join(","), before?.types.join(","), "all"),
    ...option("--selector", wish.selector, before?.selector),
    ...option("--description", wish.description, before?.description),
    ...(rotate ? ["--rotate-secret"] : []),
  );
}
