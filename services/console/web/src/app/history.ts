import { createBrowserHistory } from "@tanstack/react-router";

/** The addresses that the reader came through; apart from the router, so that any part of a page can go to another. */
export const history = createBrowserHistory();
