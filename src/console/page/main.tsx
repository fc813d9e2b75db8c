/** Starts the page. */

import { render } from "preact";
import { ErrorBoundary, LocationProvider } from "preact-iso";
import { App } from "./app.tsx";
import "./components/first-file.ts";
import { rootPath } from "./lib/router.ts";

document.querySelector(".not-started")?.remove();
render(
  <LocationProvider scope={rootPath}>
    <ErrorBoundary>
      <App />
    </ErrorBoundary>
  </LocationProvider>,
  document.getElementById("app")!,
);
