import type { Role } from "@rollcall/api/rollcall/admin/v1/access_pb";
import type { CallError } from "../live/call-error.ts";
import { roleWord } from "../state/roles.ts";
import { Notice } from "../ui/notices.tsx";

/** What sign-in failed with. */
export function SignInError({ error }: { readonly error: CallError }) {
  return (
    <Notice tone="bad">
      {error.message} <code>{error.reason}</code>
    </Notice>
  );
}

/** A role for the question whether to sign in with it. */
export function RoleText({ role }: { readonly role: Role }) {
  return <strong>{roleWord(role)}</strong>;
}
