-- What version 2 of the schema left: two racks that shared one database, each with a run, one of them cut.
BEGIN TRANSACTION;
CREATE TABLE acknowledgements (
	rack VARCHAR(128) NOT NULL, 
	component VARCHAR(256) NOT NULL, 
	rule VARCHAR(64) NOT NULL, 
	"by" VARCHAR(256) NOT NULL, 
	comment TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	until FLOAT, 
	PRIMARY KEY (rack, component, rule)
);
INSERT INTO "acknowledgements" VALUES('r1','r1-h1','host.unreachable','ops@console','being repaired',100.0,NULL);
INSERT INTO "acknowledgements" VALUES('r2','r2-h1','host.unreachable','ops@console','being repaired',200.0,NULL);
CREATE TABLE assignment (
	job VARCHAR(128) NOT NULL, 
	rank INTEGER NOT NULL, 
	accelerator VARCHAR(128) NOT NULL, 
	run VARCHAR(64) NOT NULL, 
	PRIMARY KEY (job, rank)
);
INSERT INTO "assignment" VALUES('r1-job',0,'a','swap-0001');
INSERT INTO "assignment" VALUES('r1-job',1,'b','swap-0001');
INSERT INTO "assignment" VALUES('r2-job',0,'a','swap-0002');
INSERT INTO "assignment" VALUES('r2-job',1,'b','swap-0002');
CREATE TABLE device_states (
	device VARCHAR(128) NOT NULL, 
	puc INTEGER NOT NULL, 
	state VARCHAR(8) NOT NULL, 
	PRIMARY KEY (device, puc)
);
INSERT INTO "device_states" VALUES('r1-mesh',0,'=');
INSERT INTO "device_states" VALUES('r1-mesh',1,'x');
INSERT INTO "device_states" VALUES('r2-mesh',0,'=');
INSERT INTO "device_states" VALUES('r2-mesh',1,'x');
CREATE TABLE devices (
	device VARCHAR(128) NOT NULL, 
	certain INTEGER NOT NULL, 
	run VARCHAR(64) NOT NULL, 
	PRIMARY KEY (device)
);
INSERT INTO "devices" VALUES('r1-mesh',1,'swap-0001');
INSERT INTO "devices" VALUES('r2-mesh',0,'swap-0002');
CREATE TABLE health_memory (
	rack VARCHAR(128) NOT NULL, 
	at FLOAT NOT NULL, 
	document TEXT NOT NULL, 
	PRIMARY KEY (rack)
);
INSERT INTO "health_memory" VALUES('r1',100.0,'{"seen": "r1"}');
INSERT INTO "health_memory" VALUES('r2',200.0,'{"seen": "r2"}');
CREATE TABLE journal (
	seq INTEGER NOT NULL, 
	run VARCHAR(64) NOT NULL, 
	at FLOAT NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	step VARCHAR(32) NOT NULL, 
	data TEXT NOT NULL, 
	fence INTEGER NOT NULL, 
	version VARCHAR(32) NOT NULL, 
	previous VARCHAR(64) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	PRIMARY KEY (seq)
);
INSERT INTO "journal" VALUES(1,'swap-0001',100.0,'begin','','{"inventory_digest": "1dea", "plan": "00000001", "target": "rack", "title": "r1-job: replace a by b – ü", "who": "ops@console from 10.0.0.7"}',1,'0.1.0','0000000000000000000000000000000000000000000000000000000000000000','4bf4fdeeef11af96c99f69d439a6f19edc0a33ef6dbb7894c034f8dd4e48273f');
INSERT INTO "journal" VALUES(2,'swap-0001',101.0,'intent','1','{"do": "program", "title": "program r1-mesh"}',1,'0.1.0','4bf4fdeeef11af96c99f69d439a6f19edc0a33ef6dbb7894c034f8dd4e48273f','f2437491884ac21cd1758e2fb8c7280e1173f364494167b99eaf092dbb35d636');
INSERT INTO "journal" VALUES(3,'swap-0001',102.0,'outcome','1','{"done": true}',1,'0.1.0','f2437491884ac21cd1758e2fb8c7280e1173f364494167b99eaf092dbb35d636','2d600c146f04b2bca6213b521d764f09f9e93b98f4d124d7863a2b07ac39633e');
INSERT INTO "journal" VALUES(4,'swap-0001',103.0,'end','','{"seconds": 3.0, "state": "done"}',1,'0.1.0','2d600c146f04b2bca6213b521d764f09f9e93b98f4d124d7863a2b07ac39633e','18e7c3c85c49c9d38db2112f14fcdc86039b8b758d450a11002301befb4c3ea3');
INSERT INTO "journal" VALUES(5,'swap-0002',200.0,'begin','','{"inventory_digest": "1dea", "plan": "00000002", "target": "rack", "title": "r2-job: replace a by b – ü", "who": "ops@console from 10.0.0.7"}',1,'0.1.0','18e7c3c85c49c9d38db2112f14fcdc86039b8b758d450a11002301befb4c3ea3','4192333d0225831526a6324ab50cee510b6cf2f71c9cabae0e87a0ab0d4b6208');
INSERT INTO "journal" VALUES(6,'swap-0002',201.0,'intent','1','{"do": "program", "title": "program r2-mesh"}',1,'0.1.0','4192333d0225831526a6324ab50cee510b6cf2f71c9cabae0e87a0ab0d4b6208','fabca2033d2a1e2208cdeec68174ef15c29c9905e0ab47f18df35c4a268aa00b');
INSERT INTO "journal" VALUES(7,'swap-0002',202.0,'outcome','1','{"done": true}',1,'0.1.0','fabca2033d2a1e2208cdeec68174ef15c29c9905e0ab47f18df35c4a268aa00b','bc026b6f4568e9ef63d8c7fd4fae0f5391e0e6f1345e7e955a5af1fb7717f2b0');
INSERT INTO "journal" VALUES(8,'swap-0002',203.0,'intent','2','{"do": "program", "title": "program r2-mesh"}',1,'0.1.0','bc026b6f4568e9ef63d8c7fd4fae0f5391e0e6f1345e7e955a5af1fb7717f2b0','76eb3d7e28a62de2ec9cc1b4334b38d4ced7c1aaf46aa2f5c894ffcfca8dd931');
CREATE TABLE leases (
	rack VARCHAR(128) NOT NULL, 
	holder TEXT NOT NULL, 
	fence INTEGER NOT NULL, 
	expires_at FLOAT NOT NULL, 
	PRIMARY KEY (rack)
);
INSERT INTO "leases" VALUES('r1','ops@console',1,0.0);
INSERT INTO "leases" VALUES('r2','ops@console',1,230.0);
CREATE TABLE maintenance_windows (
	id VARCHAR(64) NOT NULL, 
	rack VARCHAR(128) NOT NULL, 
	component VARCHAR(256) NOT NULL, 
	"by" VARCHAR(256) NOT NULL, 
	comment TEXT NOT NULL, 
	starts FLOAT NOT NULL, 
	ends FLOAT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "maintenance_windows" VALUES('maintenance-r1','r1','r1','ops@console','new fans',100.0,1100.0);
INSERT INTO "maintenance_windows" VALUES('maintenance-r2','r2','r2','ops@console','new fans',200.0,1200.0);
CREATE TABLE meta (
	"key" VARCHAR(64) NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "meta" VALUES('schema_version','2');
CREATE TABLE plans (
	id VARCHAR(64) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	created_at FLOAT NOT NULL, 
	target VARCHAR(16) NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "plans" VALUES('plan-00000001','00000001',99.0,'rack','{"id": "plan-00000001", "digest": "00000001", "created_at": 99.0, "target": "rack", "rack": "r1", "title": "t"}');
INSERT INTO "plans" VALUES('plan-00000002','00000002',199.0,'rack','{"id": "plan-00000002", "digest": "00000002", "created_at": 199.0, "target": "rack", "rack": "r2", "title": "t"}');
CREATE TABLE runs (
	id VARCHAR(64) NOT NULL, 
	rack VARCHAR(128) NOT NULL, 
	target VARCHAR(16) NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	title TEXT NOT NULL, 
	"plan" TEXT NOT NULL, 
	plan_digest VARCHAR(64) NOT NULL, 
	inventory_digest VARCHAR(64) NOT NULL, 
	who VARCHAR(256) NOT NULL, 
	version VARCHAR(32) NOT NULL, 
	fence INTEGER NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	started_at FLOAT NOT NULL, 
	ended_at FLOAT, 
	undone_by VARCHAR(64), 
	PRIMARY KEY (id)
);
INSERT INTO "runs" VALUES('swap-0001','r1','rack','swap','r1-job: replace a by b – ü','{"id": "plan-00000001", "digest": "00000001", "created_at": 99.0, "target": "rack", "rack": "r1", "title": "t"}','00000001','1dea','ops@console from 10.0.0.7','0.1.0',1,'done',100.0,103.0,NULL);
INSERT INTO "runs" VALUES('swap-0002','r2','rack','swap','r2-job: replace a by b – ü','{"id": "plan-00000002", "digest": "00000002", "created_at": 199.0, "target": "rack", "rack": "r2", "title": "t"}','00000002','1dea','ops@console from 10.0.0.7','0.1.0',1,'running',200.0,NULL,NULL);
CREATE TABLE transitions (
	seq INTEGER NOT NULL, 
	rack VARCHAR(128) NOT NULL, 
	at FLOAT NOT NULL, 
	component VARCHAR(256) NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	"before" VARCHAR(16), 
	"after" VARCHAR(16) NOT NULL, 
	rules TEXT NOT NULL, 
	evidence TEXT NOT NULL, 
	PRIMARY KEY (seq)
);
INSERT INTO "transitions" VALUES(1,'r1',100.0,'r1-g1','accelerator','ok','failed','["gpu.xid"]','fell off the bus');
INSERT INTO "transitions" VALUES(2,'r2',200.0,'r2-g1','accelerator','ok','failed','["gpu.xid"]','fell off the bus');
CREATE INDEX ix_journal_run ON journal (run);
CREATE INDEX ix_maintenance_windows_rack ON maintenance_windows (rack);
CREATE INDEX transitions_of_a_component ON transitions (rack, component, seq);
COMMIT;
