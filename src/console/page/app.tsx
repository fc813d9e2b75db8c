/** Routes of the console. */

import { useEffect, useLayoutEffect } from "preact/hooks";
import { Route, Router, useLocation } from "preact-iso";
import { Layout, Opening } from "./components/layout.tsx";
import { Page } from "./components/page.tsx";
import { Empty, ErrorState, NotLoaded, OfflineBar, Rows } from "./components/states.tsx";
import { lazyPage, type Placeholder } from "./lib/lazy-page.ts";
import { followChanges } from "./lib/resource.ts";
import { rootPath, to } from "./lib/router.ts";
import { followSession, loadSession, session, sessionExpired } from "./lib/session.ts";
import { startPage } from "./lib/start-page.ts";
import { onTabMessage } from "./lib/tabs.ts";
import { messages } from "./messages/index.ts";
// The landing page: bundled, to save a request.
import { Flags } from "./pages/flags/flags.tsx";
import { Setup } from "./pages/setup.tsx";
import { SignIn, SignInAgain } from "./pages/sign-in.tsx";

/** The page's title until its file is loaded. */
const getPlaceholder =
  (name: keyof typeof messages.frame.pages): Placeholder =>
  (props) => (
    <Page title={messages.frame.pages[name]}>
      <NotLoaded {...props} />
    </Page>
  );

/** By their path below the console's. */
const laterPages = {
  "flags/:id": lazyPage(
    () => import("./pages/flag/flag.tsx").then(({ FlagPage }) => FlagPage),
    getPlaceholder("flags"),
  ),
  experiments: lazyPage(
    () => import("./pages/experiments/experiments.tsx").then(({ Experiments }) => Experiments),
    getPlaceholder("experiments"),
  ),
  "experiments/new": lazyPage(
    () => import("./pages/experiments/setup.tsx").then(({ NewExperiment }) => NewExperiment),
    getPlaceholder("experiments"),
  ),
  "experiments/:id/setup": lazyPage(
    () => import("./pages/experiments/setup.tsx").then(({ ExperimentSetup }) => ExperimentSetup),
    getPlaceholder("experiments"),
  ),
  "experiments/:id": lazyPage(
    () => import("./pages/experiments/experiment.tsx").then(({ ExperimentPage }) => ExperimentPage),
    getPlaceholder("experiments"),
  ),
  surveys: lazyPage(
    () => import("./pages/surveys/surveys.tsx").then(({ Surveys }) => Surveys),
    getPlaceholder("surveys"),
  ),
  "surveys/new": lazyPage(
    () => import("./pages/surveys/survey.tsx").then(({ NewSurvey }) => NewSurvey),
    getPlaceholder("surveys"),
  ),
  "surveys/:id": lazyPage(
    () => import("./pages/surveys/survey.tsx").then(({ SurveyPage }) => SurveyPage),
    getPlaceholder("surveys"),
  ),
  "early-access": lazyPage(
    () => import("./pages/early-access/features.tsx").then(({ Features }) => Features),
    getPlaceholder("early-access"),
  ),
  "early-access/:id": lazyPage(
    () => import("./pages/early-access/feature.tsx").then(({ FeaturePage }) => FeaturePage),
    getPlaceholder("early-access"),
  ),
  start: lazyPage(
    () => import("./pages/getting-started.tsx").then(({ GettingStarted }) => GettingStarted),
    getPlaceholder("start"),
  ),
  overview: lazyPage(
    () => import("./pages/overview/overview.tsx").then(({ Overview }) => Overview),
    getPlaceholder("overview"),
  ),
  events: lazyPage(
    () => import("./pages/live.tsx").then(({ LivePage }) => LivePage),
    getPlaceholder("events"),
  ),
  sql: lazyPage(() => import("./pages/sql/sql.tsx").then(({ Sql }) => Sql), getPlaceholder("sql")),
  explore: lazyPage(
    () => import("./pages/explore/explore.tsx").then(({ Explore }) => Explore),
    getPlaceholder("explore"),
  ),
  persons: lazyPage(
    () => import("./pages/people/persons.tsx").then(({ Persons }) => Persons),
    getPlaceholder("persons"),
  ),
  "persons/:id": lazyPage(
    () => import("./pages/people/person.tsx").then(({ PersonPage }) => PersonPage),
    getPlaceholder("persons"),
  ),
  cohorts: lazyPage(
    () => import("./pages/people/cohorts.tsx").then(({ Cohorts }) => Cohorts),
    getPlaceholder("cohorts"),
  ),
  "cohorts/:id": lazyPage(
    () => import("./pages/people/cohort.tsx").then(({ CohortPage }) => CohortPage),
    getPlaceholder("cohorts"),
  ),
  dashboards: lazyPage(
    () => import("./pages/dashboards/dashboards.tsx").then(({ Dashboards }) => Dashboards),
    getPlaceholder("dashboards"),
  ),
  "dashboards/:id": lazyPage(
    () => import("./pages/dashboards/dashboard.tsx").then(({ Dashboard }) => Dashboard),
    getPlaceholder("dashboards"),
  ),
  activity: lazyPage(
    () => import("./pages/activity.tsx").then(({ Activity }) => Activity),
    getPlaceholder("activity"),
  ),
  settings: lazyPage(
    () => import("./pages/settings/settings.tsx").then(({ Settings }) => Settings),
    getPlaceholder("settings"),
  ),
  instance: lazyPage(
    () => import("./pages/instance/instance.tsx").then(({ Instance }) => Instance),
    getPlaceholder("instance"),
  ),
};

/** What a share link shows, without a session. */
const Shared = lazyPage(
  () => import("./pages/shared.tsx").then(({ Shared }) => Shared),
  (props) => (
    <main class="alone">
      <NotLoaded {...props} />
    </main>
  ),
);

/** Loads a page's files before it is rendered, in parallel with the session. */
function preloadPage(path: string): void {
  const parts = path.slice(rootPath.length + 1).split("/");
  const isAt = (address: string) => {
    const known = address.split("/");
    return (
      known.length === parts.length &&
      known.every((part, position) => part === ":id" || part === parts[position])
    );
  };
  const page = Object.entries(laterPages).find(([address]) => isAt(address));
  // The page shows the error when it is rendered.
  page?.[1].preload().catch(() => undefined);
}

/** Opens the start page of the project. */
function Home() {
  const { route } = useLocation();
  useEffect(() => {
    const controller = new AbortController();
    void startPage(Object.keys(laterPages), controller.signal).then((name) => {
      if (!controller.signal.aborted) route(to(name), true);
    });
    return () => controller.abort();
  }, []);
  return <Rows />;
}

/** Redirects the former page Live to Events. */
function Live() {
  const { route } = useLocation();
  useEffect(() => route(`${rootPath}/events${location.search}`, true), []);
  return <Rows />;
}

function Unknown() {
  return (
    <Page title={messages.frame.unknownPage}>
      <Empty title={messages.frame.missingHelp} icon="search" />
    </Page>
  );
}

export function App() {
  const { path } = useLocation();
  const isSetup = path === `${rootPath}/setup`;
  const isShared = path === `${rootPath}/shared`;
  // Before the first paint: each page waits for this.
  useLayoutEffect(() => {
    if (isSetup || isShared || session.value.state !== "unknown") return;
    preloadPage(path);
    void loadSession();
  }, [isSetup, isShared]);
  useEffect(() => {
    if (isSetup || isShared) return;
    const endChanges = followChanges();
    const endSession = onTabMessage("session", () => void followSession());
    return () => {
      endChanges();
      endSession();
    };
  }, [isSetup, isShared]);
  if (isSetup) return <Setup />;
  if (isShared) return <Shared />;
  const current = session.value;
  if (current.state === "out") return <SignIn />;
  if (current.state === "unreachable") {
    return (
      <main class="alone">
        {current.failure.isPassing ? <OfflineBar failure={current.failure} readAt={0} /> : null}
        <ErrorState failure={current.failure} onRetry={() => void loadSession()} />
      </main>
    );
  }
  if (current.state === "unknown") return <Opening />;
  return (
    <>
      <Layout key={current.me.uuid}>
        <Router>
          <Route path={`${rootPath}/`} component={Home} />
          <Route path={`${rootPath}/flags`} component={Flags} />
          <Route path={`${rootPath}/live`} component={Live} />
          {Object.entries(laterPages).map(([address, page]) => (
            <Route key={address} path={`${rootPath}/${address}`} component={page} />
          ))}
          <Route default component={Unknown} />
        </Router>
      </Layout>
      {sessionExpired.value && <SignInAgain />}
    </>
  );
}
