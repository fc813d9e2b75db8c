/** Which page is shown to whom. */

import { useEffect, useLayoutEffect } from "preact/hooks";
import { Route, Router, useLocation } from "preact-iso";
import { rootPath } from "./lib/address.ts";
import { later } from "./lib/later.ts";
import { expired, loadSession, session } from "./lib/session.ts";
// Where everybody lands: not one more file to wait for.
import { Flags } from "./pages/flags.tsx";
import { Setup } from "./pages/setup.tsx";
import { SignIn, SignInAgain } from "./pages/sign-in.tsx";
import { Frame, Opening } from "./parts/frame.tsx";
import { Page } from "./parts/page.tsx";
import { AwayBar, Empty, Rows, Trouble } from "./parts/states.tsx";
import { words } from "./words/index.ts";

/** By their addresses below the console's. Their files are got when somebody goes there. */
const laterPages = {
  "flags/:id": later(() => import("./pages/flag/flag.tsx").then(({ FlagPage }) => FlagPage)),
  start: later(() => import("./pages/start.tsx").then(({ Start }) => Start)),
  live: later(() => import("./pages/live.tsx").then(({ LivePage }) => LivePage)),
  sql: later(() => import("./pages/sql.tsx").then(({ Sql }) => Sql)),
  explore: later(() => import("./pages/explore/explore.tsx").then(({ Explore }) => Explore)),
  persons: later(() => import("./pages/people/persons.tsx").then(({ Persons }) => Persons)),
  "persons/:id": later(() => import("./pages/people/person.tsx").then(({ PersonPage }) => PersonPage)),
  cohorts: later(() => import("./pages/people/cohorts.tsx").then(({ Cohorts }) => Cohorts)),
  "cohorts/:id": later(() => import("./pages/people/cohort.tsx").then(({ CohortPage }) => CohortPage)),
  dashboards: later(() => import("./pages/dashboards.tsx").then(({ Dashboards }) => Dashboards)),
  "dashboards/:id": later(() => import("./pages/dashboard.tsx").then(({ Dashboard }) => Dashboard)),
  activity: later(() => import("./pages/activity.tsx").then(({ Activity }) => Activity)),
  settings: later(() => import("./pages/settings/settings.tsx").then(({ Settings }) => Settings)),
  instance: later(() => import("./pages/instance/instance.tsx").then(({ Instance }) => Instance)),
};

/** Gets the files of a page before it is shown, while it is found out who is there. */
function preloadPage(path: string): void {
  const [name, id] = path.slice(rootPath.length + 1).split("/");
  const page = Object.entries(laterPages).find(([address]) => address === (id ? `${name}/:id` : name));
  // Whoever shows it meets the error.
  page?.[1].preload().catch(() => undefined);
}

function Home() {
  const { route } = useLocation();
  useEffect(() => route(`${rootPath}/flags`, true), []);
  return <Rows />;
}

function Unknown() {
  return (
    <Page title={words.frame.missingTitle}>
      <Empty title={words.frame.unknownPage} icon="search" />
    </Page>
  );
}

export function App() {
  const { path } = useLocation();
  const isSetup = path === `${rootPath}/setup`;
  // Before the first paint: each page waits for this.
  useLayoutEffect(() => {
    if (isSetup || session.value.state !== "unknown") return;
    preloadPage(path);
    void loadSession();
  }, [isSetup]);
  if (isSetup) return <Setup />;
  const current = session.value;
  if (current.state === "out") return <SignIn />;
  if (current.state === "unreachable") {
    return (
      <main class="alone">
        {current.failure.isPassing ? <AwayBar failure={current.failure} readAt={0} /> : null}
        <Trouble failure={current.failure} onRetry={() => void loadSession()} />
      </main>
    );
  }
  if (current.state === "unknown") return <Opening />;
  return (
    <>
      <Frame key={current.me.uuid}>
        <Router>
          <Route path={`${rootPath}/`} component={Home} />
          <Route path={`${rootPath}/flags`} component={Flags} />
          {Object.entries(laterPages).map(([address, page]) => (
            <Route key={address} path={`${rootPath}/${address}`} component={page} />
          ))}
          <Route default component={Unknown} />
        </Router>
      </Frame>
      {expired.value && <SignInAgain />}
    </>
  );
}
