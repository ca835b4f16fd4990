import { AccessService } from "@rollcall/api/rollcall/admin/v1/access_pb";
import type { Cell } from "../output/table.ts";
import type { ControlPlane } from "./control-plane.ts";

/** Names an actor of a change for people, such as "ana@example.com" or "token ci". */
export type ActorNames = (actor: string) => string;

const TOKEN = "token:";
/** Number of characters of an id that are enough to find the id in a list. */
const SHORT_ID = 8;
const PAGE_SIZE = 500;

/** Name actors without asking the control plane: tokens by the start of their ids. */
export const plainActorNames: ActorNames = (actor) => {
  const [kind = "", ...rest] = actor.split(":");
  const name = rest.join(":");
  switch (kind) {
    case "user":
      return name;
    case "token":
      return `token ${name.slice(0, SHORT_ID)}`;
    case "join-token":
      return `join token ${name}`;
    case "node":
      return `node ${name}`;
    case "system":
    case "replica":
    case "scheduler":
      return "the control plane";
    default:
      return actor || "-";
  }
};

/**
 * Create a function that names actors. Asks the control plane only if `actors` includes an access token. Tokens are
 * shown by name if the caller is allowed to list them, and otherwise by the start of their ids.
 */
export async function readActorNames(control: ControlPlane, actors: readonly string[]): Promise<ActorNames> {
  if (!actors.some((actor) => actor.startsWith(TOKEN))) return plainActorNames;
  const client = control.client("admin", AccessService);
  const names = await client.listAccessTokens({ pageSize: PAGE_SIZE, showEnded: true }).then(
    ({ accessTokens }) => new Map(accessTokens.map(({ id, name }) => [`${TOKEN}${id}`, name])),
    // Ignore errors, because without names, ids are shown.
    () => new Map<string, string>(),
  );
  return (actor) => {
    const name = names.get(actor);
    if (name === undefined) return plainActorNames(actor);
    return /\btoken\b/i.test(name) ? name : `token ${name}`;
  };
}

/** Names actors of a list that is read page by page. */
export class PagedActorNames {
  readonly #control: ControlPlane;
  #names: ActorNames | null = null;

  constructor(control: ControlPlane) {
    this.#control = control;
  }

  /** Read the names before the first page that needs them is printed. */
  async learn(actors: readonly string[]): Promise<void> {
    if (this.#names === null && actors.some((actor) => actor.startsWith(TOKEN))) {
      this.#names = await readActorNames(this.#control, actors);
    }
  }

  /** The actor's name. */
  nameOf(actor: string): string {
    return (this.#names ?? plainActorNames)(actor);
  }

  /** The cell of an actor: its name, or its id for wide tables and programs. */
  cell(actor: string, isWide: boolean): Cell {
    return { text: (isWide && actor) || this.nameOf(actor), raw: actor };
  }
}
