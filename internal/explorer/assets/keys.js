import { ready } from "./page.js";

ready();
