import { signOut, signOutEverywhere } from "../session/sign-out.ts";
import { Menu } from "../ui/menu.tsx";

/** The name of the user at the foot of the navigation, which opens a menu to sign out. */
export function SessionMenu({
  name,
  actor,
  role,
}: {
  readonly name: string;
  readonly actor: string;
  readonly role: string;
}) {
  return (
    <Menu
      label={`Session of ${name} (${role})`}
      look="small plain who"
      items={[
        { label: "Sign out", onSelect: () => signOut() },
        { label: "Sign out everywhere", hint: "every browser", onSelect: () => signOutEverywhere() },
      ]}
    >
      <span className="small cut" title={actor}>
        {name} <span className="soft">({role})</span>
      </span>
      <span aria-hidden="true">▾</span>
    </Menu>
  );
}
