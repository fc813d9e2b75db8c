/** Code to paste, per SDK, with this server's URL and the project's key. Pure. */

export interface Snippet {
  name: string;
  /** Command that installs the library. */
  install?: string;
  event: string;
  flag: string;
}

/** One snippet per SDK: `event` sends one event, `flag` evaluates one flag. Each is complete. */
export function snippets(
  host: string,
  token: string,
  flagKey: string,
  hasVariants = false,
): Record<string, Snippet> {
  const key = JSON.stringify(token);
  const at = JSON.stringify(host);
  const flag = JSON.stringify(flagKey);
  const node = `import { PostHog } from "posthog-node";\n\nconst posthog = new PostHog(${key}, { host: ${at} });\n`;
  const python = `from posthog import Posthog\n\nposthog = Posthog(${key}, host=${at})\n`;
  const ruby = `require "posthog"\n\nposthog = PostHog::Client.new(api_key: ${key}, host: ${at})\n`;
  const php = `<?php\nrequire "vendor/autoload.php";\n\nuse PostHog\\PostHog;\n\nPostHog::init(${key}, ["host" => ${at}]);\n`;
  const browser = `import posthog from "posthog-js";\n\nposthog.init(${key}, { api_host: ${at} });\nposthog.identify("user-1");\n`;
  const html = `<script src=${JSON.stringify(`${host}/static/array.js`)}></script>\n<script>\n  posthog.init(${key}, { api_host: ${at} });\n  posthog.identify("user-1");\n`;
  const react = (imported: string, app: string, after = "") =>
    `import posthog from "posthog-js";\nimport { ${imported} } from "posthog-js/react";\nimport { createRoot } from "react-dom/client";\n\nposthog.init(${key}, { api_host: ${at} });\nposthog.identify("user-1");\n${app}\ncreateRoot(document.getElementById("root")).render(\n  <PostHogProvider client={posthog}>\n    <App />\n  </PostHogProvider>,\n);\n${after}`;
  const vue = (body: string) =>
    `import posthog from "posthog-js";\nimport { createApp } from "vue";\nimport App from "./App.vue";\n\nposthog.init(${key}, { api_host: ${at} });\nposthog.identify("user-1");\n${body}\nconst app = createApp(App);\napp.config.globalProperties.$posthog = posthog;\napp.mount("#app");\n`;
  const go = (body: string) =>
    `package main\n\nimport (\n\t"fmt"\n\n\t"github.com/posthog/posthog-go"\n)\n\nfunc main() {\n\tclient, _ := posthog.NewWithConfig(${key}, posthog.Config{Endpoint: ${at}})\n\tdefer client.Close()\n${body}}\n`;
  const goEvent =
    '\terr := client.Enqueue(posthog.Capture{\n\t\tDistinctId: "user-1", Event: "signed up", Properties: posthog.NewProperties().Set("plan", "free"),\n\t})\n\tfmt.Println(err)\n';
  const read = hasVariants
    ? { camel: "getFeatureFlag", snake: "get_feature_flag", python: "get_feature_flag", go: "GetFeatureFlag" }
    : {
        camel: "isFeatureEnabled",
        snake: "is_feature_enabled",
        python: "feature_enabled",
        go: "IsFeatureEnabled",
      };
  const hook = hasVariants ? "useFeatureFlagVariantKey" : "useFeatureFlagEnabled";
  const whenLoaded = `posthog.onFeatureFlags(() => console.log(posthog.${read.camel}(${flag})));\n`;
  const goFlag = `\tvalue, _ := client.${read.go}(posthog.FeatureFlagPayload{Key: ${flag}, DistinctId: "user-1"})\n\tfmt.Println(value)\n`;
  const captured = 'posthog.capture("signed up", { plan: "free" });\n';
  return {
    html: {
      name: "HTML",
      event: `${html}  ${captured}</script>\n`,
      flag: `${html}  ${whenLoaded}</script>\n`,
    },
    javascript: {
      name: "JavaScript",
      install: "npm install posthog-js",
      event: browser + captured,
      flag: browser + whenLoaded,
    },
    react: {
      name: "React",
      install: "npm install posthog-js",
      event: react("PostHogProvider", "\nconst App = () => <p>Hello</p>;\n", captured),
      flag: react(
        `PostHogProvider, ${hook}`,
        `\nfunction App() {\n  return <p>{String(${hook}(${flag}))}</p>;\n}\n`,
      ),
    },
    next: {
      name: "Next.js",
      install: "npm install posthog-js",
      event: `// instrumentation-client.js\n${browser}${captured}`,
      flag: `// instrumentation-client.js\n${browser}${whenLoaded}`,
    },
    vue: {
      name: "Vue",
      install: "npm install posthog-js",
      event: vue(captured),
      flag: vue(whenLoaded),
    },
    node: {
      name: "Node",
      install: "npm install posthog-node",
      event: `${node}posthog.capture({ distinctId: "user-1", event: "signed up", properties: { plan: "free" } });\nawait posthog.shutdown();\n`,
      flag: `${node}console.log(await posthog.${read.camel}(${flag}, "user-1"));\nawait posthog.shutdown();\n`,
    },
    python: {
      name: "Python",
      install: "pip install posthog",
      event: `${python}posthog.capture("signed up", distinct_id="user-1", properties={"plan": "free"})\nposthog.shutdown()\n`,
      flag: `${python}print(posthog.${read.python}(${flag}, "user-1"))\nposthog.shutdown()\n`,
    },
    go: {
      name: "Go",
      install: "go get github.com/posthog/posthog-go",
      event: go(goEvent),
      flag: go(goFlag),
    },
    ruby: {
      name: "Ruby",
      install: "gem install posthog-ruby",
      event: `${ruby}posthog.capture(distinct_id: "user-1", event: "signed up", properties: { plan: "free" })\nposthog.shutdown\n`,
      flag: `${ruby}puts posthog.${read.snake}(${flag}, "user-1")\nposthog.shutdown\n`,
    },
    php: {
      name: "PHP",
      install: "composer require posthog/posthog-php",
      event: `${php}PostHog::capture(["distinctId" => "user-1", "event" => "signed up", "properties" => ["plan" => "free"]]);\nPostHog::flush();\n`,
      flag: `${php}var_dump(PostHog::${read.camel}(${flag}, "user-1"));\nPostHog::flush();\n`,
    },
    curl: {
      name: "curl",
      event: `curl ${host}/capture/ -d '{"api_key": ${key}, "event": "signed up", "distinct_id": "user-1"}'\n`,
      flag: `curl '${host}/flags/?v=2' -d '{"token": ${key}, "distinct_id": "user-1", "flag_keys_to_evaluate": [${flag}]}'\n`,
    },
  };
}

/** posthog-js ignores web experiments by default. */
export const webExperimentsSnippet = (host: string, token: string): string =>
  `posthog.init(${JSON.stringify(token)}, {\n  api_host: ${JSON.stringify(host)},\n  disable_web_experiments: false,\n});\n`;
