import { type ConfigValues, defineKeys, optional, text } from "@rollcall/config";
import { WEBHOOK_KEYS } from "./webhooks/webhook-keys.ts";

/** What can be configured of admin. */
export const ADMIN_KEYS = defineKeys({
  "Admin.Token": {
    schema: optional(text({ minLength: 16 })),
    default: undefined,
    doc:
      "The first access token, of role admin: at least 16 characters without blanks. It wins over " +
      "Admin.TokenFile. Without either, one is created where there is none.",
    env: ["ROLLCALL_ADMIN_TOKEN"],
    secret: true,
  },
  "Admin.TokenFile": {
    schema: optional(text()),
    default: undefined,
    doc:
      "The file that holds the first access token, of role admin. When there is no such file, a token is created " +
      "and written to it, readable by its owner alone.",
    env: ["ROLLCALL_ADMIN_TOKEN_FILE"],
  },
  ...WEBHOOK_KEYS,
});

/** The values of admin's keys. */
export type AdminConfig = ConfigValues<typeof ADMIN_KEYS>;
