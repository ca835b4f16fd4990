import { type ConfigValues, defineKeys, optional, text } from "@rollcall/config";
import { WEBHOOK_KEYS } from "./webhooks/webhook-keys.ts";

export const ADMIN_KEYS = defineKeys({
  "Admin.Token": {
    schema: optional(text({ minLength: 16 })),
    default: undefined,
    doc:
      "The first access token, with role admin: at least 16 characters without spaces. It overrides " +
      "Admin.TokenFile. Without either, a token is created if none exists.",
    env: ["ROLLCALL_ADMIN_TOKEN"],
    secret: true,
  },
  "Admin.TokenFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    doc:
      "The file with the first access token, with role admin. If it does not exist, a token is created " +
      "and written to it, readable only by its owner.",
    env: ["ROLLCALL_ADMIN_TOKEN_FILE"],
  },
  ...WEBHOOK_KEYS,
});

export type AdminConfig = ConfigValues<typeof ADMIN_KEYS>;
