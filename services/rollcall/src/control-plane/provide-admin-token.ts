import { type AdminConfig, type AdminTokenPlace, ensureAdminToken } from "@rollcall/admin";
import type { Logger } from "@rollcall/process";
import { hasAccessToken, type Store } from "@rollcall/store";

/** How the first access token is provided. */
export interface ProvideAdminTokenOptions {
  readonly store: Store;
  readonly config: Pick<AdminConfig, "Admin.Token" | "Admin.TokenFile">;
  /** Where it is kept when the configuration names no place. */
  readonly file: string;
  /**
   * Whether that file must hold a token even where the record knows one already: `up` promises it to the clients of
   * its user.
   */
  readonly always: boolean;
  readonly log: Logger;
}

/**
 * Make sure that there is a token for admin, and say where it is. Returns the file that holds it; null when there
 * is none.
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
      log.info({}, "admin token known to the record");
      break;
    case "ended":
      log.warn(
        { token_id: place.id, place: place.what },
        "admin token was revoked or has expired, another one of the record must be used",
      );
      break;
  }
}
