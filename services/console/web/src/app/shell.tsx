import { Outlet, useLocation } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import { AskedDialog } from "../actions/asked.tsx";
import { fleet, useSummary } from "../live/fleet.ts";
import { stale } from "../live/follow.ts";
import { Observable, useObservable } from "../live/observable.ts";
import { Undoable } from "../pages/approvals/undoable.tsx";
import { session, useRights } from "../session/session.ts";
import { signOut } from "../session/sign-out.ts";
import { CONNECTING, type Link } from "../state/link.ts";
import { roleWord } from "../state/roles.ts";
import { decodedPart } from "../state/words.ts";
import { Button } from "../ui/button.tsx";
import { Logo } from "../ui/logo.tsx";
import { Empty, Loading } from "../ui/notices.tsx";
import { Shape } from "../ui/state-mark.tsx";
import { ExactTime } from "../ui/time.tsx";
import { Toasts } from "../ui/toasts.tsx";
import { PageLink } from "./link.tsx";
import { isOn, NAV_PAGES } from "./pages.ts";
import { openPalette, palette, useShellKeys } from "./shell-keys.ts";
import { nextTheme, theme } from "./theme.ts";

const Palette = lazy(() => import("./palette.tsx").then((module) => ({ default: module.Palette })));
// Menus need a library that no page needs to be shown.
const SessionMenu = lazy(() => import("./session-menu.tsx").then((module) => ({ default: module.SessionMenu })));
const GROUPS = ["Fleet", "Work", "Rules", "Control plane"] as const;
const IS_MAC = navigator.userAgent.includes("Mac");
const IDLE = new Observable<Link>(CONNECTING);

/** The frame of every page: the navigation, the banner for stale data, and the dialogs that open from anywhere. */
export function Shell() {
  const { pathname } = useLocation();
  // On a narrow screen, a new page closes the navigation.
  const [openOn, setOpenOn] = useState<string | null>(null);
  if (openOn !== null && openOn !== pathname) setOpenOn(null);
  const open = openOn !== null;
  const overlay = useObservable(palette);
  useShellKeys();
  useEffect(() => {
    const page = NAV_PAGES.find((one) => isOn(one, pathname));
    const last = decodedPart(pathname.split("/").at(2) ?? "");
    document.title = [last, page?.title, "Rollcall"].filter(Boolean).join(" · ");
  }, [pathname]);
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to content
      </a>
      <div className="topbar">
        <Button icon aria-label="Navigation" aria-expanded={open} onClick={() => setOpenOn(open ? null : pathname)}>
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
        <GroupsBanner />
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
  const summary = useSummary();
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
            <Suspense fallback={<span className="small cut">{current.name}</span>}>
              <SessionMenu name={current.name} actor={current.actor} role={roleWord(current.role)} />
            </Suspense>
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

/** Shows at the bottom of the navigation whether the page is live. */
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

/** Shows when data may be stale, and since when. */
function StaleBanner() {
  const link = useObservable(stale);
  return (
    <>
      {link !== null && (
        <div className="notice bad banner" role="alert">
          <Shape tone="bad" />
          <div className="grow">
            <strong>Data may be stale</strong> since <ExactTime ms={link.sinceMs} />. The page reconnects automatically.
            Cause: {link.why}
          </div>
        </div>
      )}
    </>
  );
}

/** Warns that the user's groups are unknown, so that the role may be lower than expected. */
function GroupsBanner() {
  const current = useObservable(session);
  const leftOut = current.state === "signed-in" ? current.leftOut : null;
  if (leftOut === null) return null;
  return (
    <div className="notice warn banner" role="status">
      <Shape tone="warn" />
      <div className="grow">
        <strong>Your groups are unknown:</strong> {leftOut}.
      </div>
    </div>
  );
}

/** The page for a path that does not exist. */
export function NotFound() {
  return (
    <Empty title="Page not found">
      <PageLink to="/">Go to the overview</PageLink>
    </Empty>
  );
}
