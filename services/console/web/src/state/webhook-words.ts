import { command } from "./cli-command.ts";

/** What the form of a webhook asks for. */
export interface WebhookWish {
  readonly url: string;
  /** Types of events; all when empty. */
  readonly types: readonly string[];
  readonly selector: string;
  readonly description: string;
}

/** What is wrong with the name of a new webhook; undefined for nothing. A name that is taken would replace that one. */
export function newNameProblem(name: string, taken: readonly string[]): string | undefined {
  if (name === "") return undefined;
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) return "small letters, digits and -";
  return taken.includes(name) ? "there is one: change it in the list, or take another name" : undefined;
}

/** Whether setting a webhook lets deliveries go on that were not paused by an operator. */
export function resumesWhenSet(spec: { readonly paused: boolean } | undefined, pauseReason: string): boolean {
  return pauseReason !== "" && spec?.paused !== true;
}

/**
 * The command that sets a webhook so. What is not named stays as it was: a field that was emptied is named too.
 * `before` is null for a new one.
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
