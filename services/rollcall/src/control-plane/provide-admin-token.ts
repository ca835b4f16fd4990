import { type AdminConfig, type AdminTokenPlace, ensureAdminToken } from "@rollcall/admin";
import type { Logger } from "@rollcall/process";
import { hasAccessToken, type Store } from "@rollcall/store";

export interface ProvideAdminTokenOptions {
  readonly store: Store;
  readonly config: Pick<AdminConfig, "Admin.Token" | "Admin.TokenFile">;
  /** The default file of the token. */
  readonly file: string;
  /**
   * Whether the file must contain a token even if the store already has one. `up` needs this, because its user's
   * clients read the file.
   */
  readonly always: boolean;
  readonly log: Logger;
}

/**
 * Make sure that an admin token exists, and log where it is. Returns the file that contains the token; null for none.
 */
export async function provideAdminToken(options: ProvideAdminTokenOptions): Promise<string | null> {
  const { store, config, file, always, log } = options;
  const value = config["Admin.Token"];
  const named = config["Admin.TokenFile"];
  const spare = always || !(await hasAccessToken(store.db, "admin")) ? file : undefined;
  const place = await ensureAdminToken({ store, value, file: named ?? spare });
  tell(place, log);
  return place.kind === "file" ? place.file : null;
}

function tell(place: AdminTokenPlace, log: Logger): void {
  switch (place.kind) {
    case "value":
      log.info({ token_id: place.id }, "admin token taken from the configuration");
      break;
    case "file":
      log.info({ token_id: place.id, file: place.file }, place.created ? "admin token created" : "admin token found");
      break;
    case "kept":
      log.info({}, "admin token found in the database");
      break;
    case "ended":
      log.warn({ token_id: place.id, place: place.what }, "admin token was revoked or has expired; use another one");
      break;
  }
}
