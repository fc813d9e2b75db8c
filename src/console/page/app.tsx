/** Which page is shown to whom. */

import { useEffect } from "preact/hooks";
import { lazy, Route, Router, useLocation } from "preact-iso";
import { rootPath } from "./lib/address.ts";
import { loadSession, session } from "./lib/session.ts";
// Where everybody lands: not one more file to wait for.
import { Flags } from "./pages/flags.tsx";
import { Setup } from "./pages/setup.tsx";
import { SignIn } from "./pages/sign-in.tsx";
import { Frame } from "./parts/frame.tsx";
import { Page } from "./parts/page.tsx";
import { AwayBar, Empty, Rows, Trouble } from "./parts/states.tsx";
import { words } from "./words/index.ts";

const FlagPage = lazy(() => import("./pages/flag/flag.tsx").then(({ FlagPage }) => FlagPage));
const Start = lazy(() => import("./pages/start.tsx").then(({ Start }) => Start));
const LivePage = lazy(() => import("./pages/live.tsx").then(({ LivePage }) => LivePage));
const Sql = lazy(() => import("./pages/sql.tsx").then(({ Sql }) => Sql));
const Explore = lazy(() => import("./pages/explore/explore.tsx").then(({ Explore }) => Explore));
const Persons = lazy(() => import("./pages/people/persons.tsx").then(({ Persons }) => Persons));
const PersonPage = lazy(() => import("./pages/people/person.tsx").then(({ PersonPage }) => PersonPage));
const Cohorts = lazy(() => import("./pages/people/cohorts.tsx").then(({ Cohorts }) => Cohorts));
const CohortPage = lazy(() => import("./pages/people/cohort.tsx").then(({ CohortPage }) => CohortPage));
const Dashboards = lazy(() => import("./pages/dashboards.tsx").then(({ Dashboards }) => Dashboards));
const Dashboard = lazy(() => import("./pages/dashboard.tsx").then(({ Dashboard }) => Dashboard));
const Activity = lazy(() => import("./pages/activity.tsx").then(({ Activity }) => Activity));
const Settings = lazy(() => import("./pages/settings/settings.tsx").then(({ Settings }) => Settings));
const Instance = lazy(() => import("./pages/instance/instance.tsx").then(({ Instance }) => Instance));

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
  useEffect(() => {
    if (!isSetup && session.value.state === "unknown") void loadSession();
  }, [isSetup]);
  if (isSetup) return <Setup />;
  const current = session.value;
  if (current.state === "out") return <SignIn />;
  if (current.state === "unreachable") {
    const isAway = current.failure.status === 0 || current.failure.isEngineAway;
    return (
      <main class="alone">
        {isAway ? <AwayBar failure={current.failure} readAt={0} /> : null}
        <Trouble failure={current.failure} onRetry={() => void loadSession()} />
      </main>
    );
  }
  if (current.state === "unknown") {
    return (
      <main class="alone">
        <Rows />
      </main>
    );
  }
  return (
    <Frame>
      <Router>
        <Route path={`${rootPath}/`} component={Home} />
        <Route path={`${rootPath}/flags`} component={Flags} />
        <Route path={`${rootPath}/flags/:id`} component={FlagPage} />
        <Route path={`${rootPath}/start`} component={Start} />
        <Route path={`${rootPath}/live`} component={LivePage} />
        <Route path={`${rootPath}/sql`} component={Sql} />
        <Route path={`${rootPath}/explore`} component={Explore} />
        <Route path={`${rootPath}/persons`} component={Persons} />
        <Route path={`${rootPath}/persons/:id`} component={PersonPage} />
        <Route path={`${rootPath}/cohorts`} component={Cohorts} />
        <Route path={`${rootPath}/cohorts/:id`} component={CohortPage} />
        <Route path={`${rootPath}/dashboards`} component={Dashboards} />
        <Route path={`${rootPath}/dashboards/:id`} component={Dashboard} />
        <Route path={`${rootPath}/activity`} component={Activity} />
        <Route path={`${rootPath}/settings`} component={Settings} />
        <Route path={`${rootPath}/instance`} component={Instance} />
        <Route default component={Unknown} />
      </Router>
    </Frame>
  );
}
