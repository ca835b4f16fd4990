import { Outlet, useLocation } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import { AskedDialog } from "../actions/asked.tsx";
import { fleet } from "../live/fleet.ts";
import { stale } from "../live/follow.ts";
import { Observable, useObservable } from "../live/observable.ts";
import { Undoable } from "../pages/approvals/undoable.tsx";
import { session, useRights } from "../session/session.ts";
import { signOut, signOutEverywhere } from "../session/sign-out.ts";
import { CONNECTING, type Link } from "../state/link.ts";
import { roleWord } from "../state/roles.ts";
import { decodedPart } from "../state/words.ts";
import { Button } from "../ui/button.tsx";
import { Logo } from "../ui/logo.tsx";
import { Menu } from "../ui/menu.tsx";
import { Empty, Loading } from "../ui/notices.tsx";
import { Shape } from "../ui/state-mark.tsx";
import { ExactTime } from "../ui/time.tsx";
import { Toasts } from "../ui/toasts.tsx";
import { PageLink } from "./link.tsx";
import { isOn, NAV_PAGES } from "./pages.ts";
import { openPalette, palette, useShellKeys } from "./shell-keys.ts";
import { nextTheme, theme } from "./theme.ts";

const Palette = lazy(() => import("./palette.tsx").then((module) => ({ default: module.Palette })));
const GROUPS = ["Fleet", "Work", "Rules", "Control plane"] as const;
const IS_MAC = navigator.userAgent.includes("Mac");
const IDLE = new Observable<Link>(CONNECTING);

/** The frame of every page: navigation, what is stale, and what can be opened from anywhere. */
export function Shell() {
  const { pathname } = useLocation();
  const [open, setOpen] = useState(false);
  const overlay = useObservable(palette);
  useShellKeys();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page closes the navigation of a narrow screen.
  useEffect(() => setOpen(false), [pathname]);
  useEffect(() => {
    const page = NAV_PAGES.find((one) => isOn(one, pathname));
    const last = decodedPart(pathname.split("/").at(2) ?? "");
    document.title = [last, page?.title, "Rollcall"].filter(Boolean).join(" · ");
  }, [pathname]);
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <div className="topbar">
        <Button icon aria-label="Navigation" aria-expanded={open} onClick={() => setOpen(!open)}>
          ☰
        </Button>
        <strong className="grow">Rollcall</strong>
        <Button icon aria-label="Search and commands" onClick={() => openPalette("commands")}>
          ⌕
        </Button>
      </div>
      <Navigation path={pathname} open={open} />
      <main className="page" id="content" tabIndex={-1}>
        <StaleBanner />
        <Suspense fallback={<Loading />}>
          <Outlet />
        </Suspense>
      </main>
      <AskedDialog />
      <Suspense fallback={null}>{overlay !== null && <Palette mode={overlay} />}</Suspense>
      <Toasts>
        <Undoable />
      </Toasts>
    </div>
  );
}

function Navigation({ path, open }: { readonly path: string; readonly open: boolean }) {
  const rights = useRights();
  const summary = useObservable(fleet.summary);
  const current = useObservable(session);
  const chosen = useObservable(theme);
  const waiting = summary.membership.PENDING ?? 0;
  const pages = NAV_PAGES.filter(({ needs }) => needs === undefined || rights[needs]);
  return (
    <nav className={open ? "nav open" : "nav"} aria-label="Pages">
      <PageLink to="/" className="brand">
        <Logo /> Rollcall
      </PageLink>
      <Button className="search" onClick={() => openPalette("commands")}>
        <span className="grow soft">Search</span> <kbd>{IS_MAC ? "⌘K" : "Ctrl K"}</kbd>
      </Button>
      {GROUPS.map((group) => {
        const shown = pages.filter((page) => page.group === group);
        return shown.length === 0 ? null : (
          <div key={group}>
            <div className="group">{group}</div>
            {shown.map((page) => (
              <PageLink key={page.path} to={page.path} className="item" current={isOn(page, path)}>
                {page.title}
                {page.path === "/approvals" && waiting > 0 && <span className="badge">{waiting}</span>}
              </PageLink>
            ))}
          </div>
        );
      })}
      <div className="foot stack tight">
        <LinkState />
        {current.state === "signed-in" && (
          <>
            <Menu
              label={`Session of ${current.name} (${roleWord(current.role)})`}
              look="small plain who"
              items={[
                { label: "Sign out", onSelect: () => signOut() },
                { label: "Sign out everywhere", hint: "every browser", onSelect: () => signOutEverywhere() },
              ]}
            >
              <span className="small cut" title={current.actor}>
                {current.name} <span className="soft">({roleWord(current.role)})</span>
              </span>
              <span aria-hidden="true">▾</span>
            </Menu>
            <div className="row tight">
              <Button small onClick={() => signOut()}>
                Sign out
              </Button>
              <Button small aria-label={`Theme: ${chosen}; change it`} onClick={nextTheme}>
                {{ system: "◐", light: "○", dark: "●" }[chosen]}
              </Button>
              <Button small aria-label="Keyboard shortcuts" onClick={() => openPalette("keys")}>
                ?
              </Button>
            </div>
          </>
        )}
      </div>
    </nav>
  );
}

/** Whether the page is live, at the foot of the navigation. */
function LinkState() {
  const ofFleet = useObservable(fleet.following?.link ?? IDLE);
  const link = useObservable(stale) ?? ofFleet;
  const tone = { connecting: "busy", live: "good", stale: "bad" } as const;
  const words = { connecting: "Connecting", live: "Live", stale: "Stale" } as const;
  return (
    <span className="state small soft" data-testid="link-state">
      <Shape tone={tone[link.state]} size={8} /> {words[link.state]}
    </span>
  );
}

/** Says when what is shown may be wrong, and since when. */
function StaleBanner() {
  const link = useObservable(stale);
  return (
    <>
      {link !== null && (
        <div className="notice bad banner" role="alert">
          <Shape tone="bad" />
          <div className="grow">
            <strong>What is shown is stale</strong> since <ExactTime ms={link.sinceMs} />: {link.why} The page goes on
            by itself.
          </div>
        </div>
      )}
    </>
  );
}

/** A path that is no page. */
export function NotFound() {
  return (
    <Empty title="There is no such page">
      <PageLink to="/">To the overview</PageLink>
    </Empty>
  );
}
