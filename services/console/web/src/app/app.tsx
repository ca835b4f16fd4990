import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { useObservable } from "../live/observable.ts";
import { queries } from "../live/queries.ts";
import { openSession, session } from "../session/session.ts";
import { Button } from "../ui/button.tsx";
import { Empty, Loading } from "../ui/notices.tsx";
import { router } from "./router.tsx";

const SignInPage = lazy(() => import("../session/sign-in-page.tsx").then((module) => ({ default: module.SignInPage })));

/** The whole app: sign-in first, then the pages. */
export function App() {
  const current = useObservable(session);
  switch (current.state) {
    case "unknown":
      return (
        <div className="sign-in">
          <main>
            <Loading />
          </main>
        </div>
      );
    case "away":
      return (
        <div className="sign-in">
          <main>
            <Empty title="The control plane is unreachable">
              <p>{current.error.message}</p>
              <Button onClick={() => openSession()}>Try again</Button>
            </Empty>
          </main>
        </div>
      );
    case "signed-out":
      return (
        <Suspense fallback={null}>
          <SignInPage why={current.why} />
        </Suspense>
      );
    case "signed-in":
      if (window.location.pathname.startsWith("/sign-in") && window.location.hash.startsWith("#code=")) {
        return (
          <Suspense fallback={null}>
            <SignInPage why={null} as={current.name} />
          </Suspense>
        );
      }
      return (
        <QueryClientProvider client={queries}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      );
  }
}
