import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app/app.tsx";
import { applyTheme } from "./app/theme.ts";
import { followVisibility } from "./live/visibility.ts";
import { followSession, openSession } from "./session/session.ts";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/controls.css";
import "./styles/content.css";
import "./styles/layout.css";
import "./styles/nodes.css";

// Give this response's nonce to libraries that insert styles.
const nonce = document.querySelector<HTMLElement>('meta[property="csp-nonce"]')?.nonce;
if (nonce !== undefined) setNonce(nonce);

applyTheme();
followVisibility();
followSession();

const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}

openSession().catch(() => {
  // Ignore errors here, because openSession() stores them in the session.
});
