BEGIN TRANSACTION;
CREATE TABLE acknowledgements (
	rack VARCHAR NOT NULL, 
	component VARCHAR NOT NULL, 
	rule VARCHAR NOT NULL, 
	"by" VARCHAR NOT NULL, 
	comment TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	until FLOAT, 
	covers TEXT, 
	PRIMARY KEY (rack, component, rule)
);
INSERT INTO "acknowledgements" VALUES('golden','g2-gpu0','','ops@console from 10.0.0.7','the vendor is called',1.7956193469449431896e+09,1.79562654694494318961e+09,NULL);
CREATE TABLE approvals (
	rack VARCHAR NOT NULL, 
	"plan" VARCHAR NOT NULL, 
	policy VARCHAR NOT NULL, 
	made_by VARCHAR NOT NULL, 
	asked_at FLOAT NOT NULL, 
	expires_at FLOAT NOT NULL, 
	by_another INTEGER NOT NULL, 
	state VARCHAR NOT NULL, 
	"by" VARCHAR NOT NULL, 
	comment TEXT NOT NULL, 
	answered_at FLOAT, 
	PRIMARY KEY (rack, "plan")
);
CREATE TABLE assignment (
	rack VARCHAR NOT NULL, 
	job VARCHAR NOT NULL, 
	rank INTEGER NOT NULL, 
	accelerator VARCHAR NOT NULL, 
	run VARCHAR NOT NULL, 
	PRIMARY KEY (rack, job, rank)
);
INSERT INTO "assignment" VALUES('golden','pair',0,'g1-gpu0','rollback-0003');
INSERT INTO "assignment" VALUES('golden','pair',1,'g2-gpu0','rollback-0003');
CREATE TABLE device_states (
	rack VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	puc INTEGER NOT NULL, 
	state VARCHAR NOT NULL, 
	PRIMARY KEY (rack, device, puc)
);
INSERT INTO "device_states" VALUES('golden','mesh',0,'x');
INSERT INTO "device_states" VALUES('golden','mesh',1,'x');
INSERT INTO "device_states" VALUES('golden','mesh',2,'x');
INSERT INTO "device_states" VALUES('golden','mesh',3,'x');
INSERT INTO "device_states" VALUES('golden','mesh',4,'=');
INSERT INTO "device_states" VALUES('golden','mesh',5,'=');
INSERT INTO "device_states" VALUES('golden','mesh',6,'=');
INSERT INTO "device_states" VALUES('golden','mesh',7,'=');
INSERT INTO "device_states" VALUES('golden','mesh',8,'=');
INSERT INTO "device_states" VALUES('golden','mesh',9,'=');
INSERT INTO "device_states" VALUES('golden','mesh',10,'=');
INSERT INTO "device_states" VALUES('golden','mesh',11,'=');
INSERT INTO "device_states" VALUES('golden','mesh',12,'=');
INSERT INTO "device_states" VALUES('golden','mesh',13,'=');
INSERT INTO "device_states" VALUES('golden','mesh',14,'=');
INSERT INTO "device_states" VALUES('golden','mesh',15,'=');
INSERT INTO "device_states" VALUES('golden','mesh',16,'=');
INSERT INTO "device_states" VALUES('golden','mesh',17,'=');
INSERT INTO "device_states" VALUES('golden','mesh',18,'=');
INSERT INTO "device_states" VALUES('golden','mesh',19,'=');
INSERT INTO "device_states" VALUES('golden','mesh',20,'=');
INSERT INTO "device_states" VALUES('golden','mesh',21,'=');
INSERT INTO "device_states" VALUES('golden','mesh',22,'=');
INSERT INTO "device_states" VALUES('golden','mesh',23,'=');
INSERT INTO "device_states" VALUES('golden','mesh',24,'=');
INSERT INTO "device_states" VALUES('golden','mesh',25,'=');
INSERT INTO "device_states" VALUES('golden','mesh',26,'=');
CREATE TABLE devices (
	rack VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	certain INTEGER NOT NULL, 
	run VARCHAR NOT NULL, 
	PRIMARY KEY (rack, device)
);
INSERT INTO "devices" VALUES('golden','mesh',1,'swap-0004');
CREATE TABLE event_clears (
	rack VARCHAR NOT NULL, 
	component VARCHAR NOT NULL, 
	rule VARCHAR NOT NULL, 
	"by" VARCHAR NOT NULL, 
	reason TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (rack, component, rule)
);
CREATE TABLE health_memory (
	rack VARCHAR NOT NULL, 
	at FLOAT NOT NULL, 
	document TEXT NOT NULL, 
	PRIMARY KEY (rack)
);
CREATE TABLE journal (
	rack VARCHAR NOT NULL, 
	seq INTEGER NOT NULL, 
	run VARCHAR NOT NULL, 
	at FLOAT NOT NULL, 
	kind VARCHAR NOT NULL, 
	step VARCHAR NOT NULL, 
	data TEXT NOT NULL, 
	fence INTEGER NOT NULL, 
	version VARCHAR NOT NULL, 
	previous VARCHAR NOT NULL, 
	hash VARCHAR NOT NULL, 
	PRIMARY KEY (rack, seq)
);
INSERT INTO "journal" VALUES('golden',1,'fabric-0001',1.7956193455886693001e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "fabric", "plan": "f7642b7ef7dc7aacc983edaa8ef53e4c78ae2c9c4b42d48bfd28a9128018301d", "rack": "golden", "target": "sim", "title": "program 1 circuits of golden", "who": "ops@console from 10.0.0.7"}',1,'0.1.0','0000000000000000000000000000000000000000000000000000000000000000','62f87d25a3433f510be0a51c76384270d5d8113d00f30df4b6956b9ad71739c0');
INSERT INTO "journal" VALUES('golden',2,'fabric-0001',1.7956193455925202369e+09,'intent','1','{"do": "check", "title": "find which of 0 circuits are sound"}',1,'0.1.0','62f87d25a3433f510be0a51c76384270d5d8113d00f30df4b6956b9ad71739c0','763e90159747f70f7140da397249c489d0eaba2ac9fb280b06fd6d0e92371132');
INSERT INTO "journal" VALUES('golden',3,'fabric-0001',1.79561934559314656262e+09,'outcome','1','{"done": true, "sound": {}}',1,'0.1.0','763e90159747f70f7140da397249c489d0eaba2ac9fb280b06fd6d0e92371132','0678db5889ac8b59e3769764b883dd9cad5f28b9e9cb728a80fa9cc2c07eee68');
INSERT INTO "journal" VALUES('golden',4,'fabric-0001',1.79561934559339690209e+09,'intent','2','{"do": "program", "title": "program 27 PUCs of mesh"}',1,'0.1.0','0678db5889ac8b59e3769764b883dd9cad5f28b9e9cb728a80fa9cc2c07eee68','2f0275d39c1682a8846552990c0519c947bdc5884ec087609d25f40a067b610b');
INSERT INTO "journal" VALUES('golden',5,'fabric-0001',1.79561934559778857227e+09,'outcome','2','{"answer": "ok 27 cells set", "cells": 27, "done": true, "revert_timer": "none"}',1,'0.1.0','2f0275d39c1682a8846552990c0519c947bdc5884ec087609d25f40a067b610b','5cadcfcc4c97d0f226c82143de314ee654bf9dc137e6f1702eadfb0b3bdf710c');
INSERT INTO "journal" VALUES('golden',6,'fabric-0001',1.79561934559783697128e+09,'intent','3','{"do": "verify", "title": "verify 1 new circuit and 0 others on the same devices"}',1,'0.1.0','5cadcfcc4c97d0f226c82143de314ee654bf9dc137e6f1702eadfb0b3bdf710c','f3f9eb40e0d7d5512d79eaa6cd19a25e752831d46fad2695ab3fe1219893e912');
INSERT INTO "journal" VALUES('golden',7,'fabric-0001',1.79561934562075757983e+09,'outcome','3','{"done": true, "kept": 0, "proofs": [{"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g2-gpu0-a", "seconds": 0.021, "transmitter": "g1-gpu0-a"}, {"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g1-gpu0-a", "seconds": 0.021, "transmitter": "g2-gpu0-a"}]}',1,'0.1.0','f3f9eb40e0d7d5512d79eaa6cd19a25e752831d46fad2695ab3fe1219893e912','39956906ff859b994f33aa8aa23fd500be2c6b00e5eab1f143a5d9de8a0895ff');
INSERT INTO "journal" VALUES('golden',8,'fabric-0001',1.79561934562081408498e+09,'intent','4','{"do": "assign", "title": "write down where pair runs"}',1,'0.1.0','39956906ff859b994f33aa8aa23fd500be2c6b00e5eab1f143a5d9de8a0895ff','84ca0607f3891b68e973ab7782cba3a76a24bec38ed837a198751b4638c95088');
INSERT INTO "journal" VALUES('golden',9,'fabric-0001',1.79561934562241768843e+09,'outcome','4','{"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "done": true}',1,'0.1.0','84ca0607f3891b68e973ab7782cba3a76a24bec38ed837a198751b4638c95088','675a98a78413f7c6d9f79ff591b728cfe6a73c43b7daa3b9850f13c9765f63fe');
INSERT INTO "journal" VALUES('golden',10,'fabric-0001',1.79561934562250757213e+09,'end','','{"seconds": 0.03, "state": "done"}',1,'0.1.0','675a98a78413f7c6d9f79ff591b728cfe6a73c43b7daa3b9850f13c9765f63fe','9f450233c592ec872d7b48a7f12be9ad5dd3ca49d1d77a55cbb1c168a3311436');
INSERT INTO "journal" VALUES('golden',11,'swap-0002',1.79561934574125242232e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "swap", "plan": "8b9ed528e25d89e19e87b7d5608a9b386f6cb691f1478597f35651d97860209b", "rack": "golden", "target": "sim", "title": "pair: replace g2-gpu0 by g3-gpu0", "who": "ops@console from 10.0.0.7"}',2,'0.1.0','9f450233c592ec872d7b48a7f12be9ad5dd3ca49d1d77a55cbb1c168a3311436','aee62993242bb91f35e03e7fe79802ed4cc9f0b28349713300c6e549f02aa5a8');
INSERT INTO "journal" VALUES('golden',12,'swap-0002',1.79561934574324631687e+09,'intent','1','{"do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuit are sound"}',2,'0.1.0','aee62993242bb91f35e03e7fe79802ed4cc9f0b28349713300c6e549f02aa5a8','db38d5e33f0d425418e0bc3663cf2abfc4098df697d65a13a6148bf61f0c82fa');
INSERT INTO "journal" VALUES('golden',13,'swap-0002',1.79561934575706505772e+09,'outcome','1','{"done": true, "sound": {"g1-gpu0-a": "g2-gpu0-a", "g2-gpu0-a": "g1-gpu0-a"}, "transmitting": {"g2-gpu0-a": true, "g3-gpu0-a": true}}',2,'0.1.0','db38d5e33f0d425418e0bc3663cf2abfc4098df697d65a13a6148bf61f0c82fa','adcf777c1930580954f9d58c2afbd97e89c88bf82a6d734cd079218f2906cfb2');
INSERT INTO "journal" VALUES('golden',14,'swap-0002',1.79561934575724554061e+09,'intent','2','{"do": "transmit", "title": "darken the transmitter of g2-gpu0-a"}',2,'0.1.0','adcf777c1930580954f9d58c2afbd97e89c88bf82a6d734cd079218f2906cfb2','7757621cbece456b597fae73c03884644c725b9c1a4c6f64aa50780eccb8cd4c');
INSERT INTO "journal" VALUES('golden',15,'swap-0002',1.79561934575724911687e+09,'intent','3','{"do": "transmit", "title": "light the transmitter of g3-gpu0-a"}',2,'0.1.0','7757621cbece456b597fae73c03884644c725b9c1a4c6f64aa50780eccb8cd4c','180b8347a0d3c3ebc11f6f978e34c2a4bcc23653416036cfb36c1556e9926aa1');
INSERT INTO "journal" VALUES('golden',16,'swap-0002',1.79561934576040267948e+09,'outcome','2','{"done": true, "is": false, "was": true}',2,'0.1.0','180b8347a0d3c3ebc11f6f978e34c2a4bcc23653416036cfb36c1556e9926aa1','149a21f8028995dec53813a8943f594f75e3041ea4703cd21b7989d41c15437f');
INSERT INTO "journal" VALUES('golden',17,'swap-0002',1.79561934576041269304e+09,'outcome','3','{"done": true, "is": true, "was": true}',2,'0.1.0','149a21f8028995dec53813a8943f594f75e3041ea4703cd21b7989d41c15437f','e5aeb594528f3c4def2986216187172068a7835c5d0ec478977b9d5fd3f71d4c');
INSERT INTO "journal" VALUES('golden',18,'swap-0002',1.79561934576091957087e+09,'intent','4','{"do": "program", "title": "program 5 PUCs of mesh"}',2,'0.1.0','e5aeb594528f3c4def2986216187172068a7835c5d0ec478977b9d5fd3f71d4c','451ba8f595bd9d517472d2409b5ebb2bba635d5d5001739b3b4675f270cb3f2a');
INSERT INTO "journal" VALUES('golden',19,'swap-0002',1.79561934576474547383e+09,'outcome','4','{"answer": "ok 5 cells set", "cells": 5, "done": true, "revert_timer": "ours"}',2,'0.1.0','451ba8f595bd9d517472d2409b5ebb2bba635d5d5001739b3b4675f270cb3f2a','afd20db066cb0369e68f48743bceed4a58d375453867181691416e0499003856');
INSERT INTO "journal" VALUES('golden',20,'swap-0002',1.79561934576483774178e+09,'intent','5','{"do": "verify", "title": "verify 1 new circuit and 0 others on the same devices"}',2,'0.1.0','afd20db066cb0369e68f48743bceed4a58d375453867181691416e0499003856','caceb793f173a59f1d8c3511c7ae9dc3e63b2f9c5255251665740ce1fe7b86d8');
INSERT INTO "journal" VALUES('golden',21,'swap-0002',1.79561934576992559436e+09,'outcome','5','{"done": true, "kept": 0, "proofs": [{"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g3-gpu0-a", "seconds": 0.004, "transmitter": "g1-gpu0-a"}, {"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g1-gpu0-a", "seconds": 0.004, "transmitter": "g3-gpu0-a"}]}',2,'0.1.0','caceb793f173a59f1d8c3511c7ae9dc3e63b2f9c5255251665740ce1fe7b86d8','24ad4e1633dca5791323e9187c256c15ccdc7ee20879d7b59f91380c2cf75455');
INSERT INTO "journal" VALUES('golden',22,'swap-0002',1.79561934577001905445e+09,'intent','6','{"do": "assign", "title": "write down where pair runs"}',2,'0.1.0','24ad4e1633dca5791323e9187c256c15ccdc7ee20879d7b59f91380c2cf75455','689db018d30c4ed091b37d81071081d7318e47d2c9e076490dd4102959efdec2');
INSERT INTO "journal" VALUES('golden',23,'swap-0002',1.79561934577097630496e+09,'outcome','6','{"assignment": {"pair": ["g1-gpu0", "g3-gpu0"]}, "done": true}',2,'0.1.0','689db018d30c4ed091b37d81071081d7318e47d2c9e076490dd4102959efdec2','38a8259311048816411efe42676b19fe913d6f242a6c16d467b1414f852b6c23');
INSERT INTO "journal" VALUES('golden',24,'swap-0002',1.79561934577104711533e+09,'end','','{"seconds": 0.0278, "state": "done"}',2,'0.1.0','38a8259311048816411efe42676b19fe913d6f242a6c16d467b1414f852b6c23','8372b1c38d6821ef88a83e97eee5718d24a5ebb6c790c6ed453a12849f88e614');
INSERT INTO "journal" VALUES('golden',25,'rollback-0003',1.79561934579150724415e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "rollback", "plan": "08abb3612bb9c589d941e4f73385cf0120151efff4215603bcf6a8f197a19875", "rack": "golden", "target": "sim", "title": "take back swap-0002 (pair: replace g2-gpu0 by g3-gpu0)", "who": "ops@console from 10.0.0.7"}',3,'0.1.0','8372b1c38d6821ef88a83e97eee5718d24a5ebb6c790c6ed453a12849f88e614','72ae99fb10f48bf9993a9ef3cb7f2b8e090932cb6e74ea3c26371aa44028d33a');
INSERT INTO "journal" VALUES('golden',26,'rollback-0003',1.79561934579315805437e+09,'intent','1','{"do": "check", "title": "find which of 1 circuit are sound"}',3,'0.1.0','72ae99fb10f48bf9993a9ef3cb7f2b8e090932cb6e74ea3c26371aa44028d33a','a440a64f5c1d8751297e6820590b23afb63b77f48b1368d217c88c29486616ed');
INSERT INTO "journal" VALUES('golden',27,'rollback-0003',1.79561934580613279336e+09,'outcome','1','{"done": true, "sound": {"g1-gpu0-a": "g3-gpu0-a", "g3-gpu0-a": "g1-gpu0-a"}, "transmitting": {"g2-gpu0-a": false}}',3,'0.1.0','a440a64f5c1d8751297e6820590b23afb63b77f48b1368d217c88c29486616ed','6c566df4a7a003b02926d5cc2ee881417360c29442fa43d0bdc79fef508080fc');
INSERT INTO "journal" VALUES('golden',28,'rollback-0003',1.79561934580633735655e+09,'intent','2','{"do": "transmit", "title": "light the transmitter of g2-gpu0-a"}',3,'0.1.0','6c566df4a7a003b02926d5cc2ee881417360c29442fa43d0bdc79fef508080fc','f51a9b820577e5f7761e664ff1ff7880a550aaadf2e4081e1d2ff567eef7ee05');
INSERT INTO "journal" VALUES('golden',29,'rollback-0003',1.79561934580865645415e+09,'outcome','2','{"done": true, "is": true, "was": false}',3,'0.1.0','f51a9b820577e5f7761e664ff1ff7880a550aaadf2e4081e1d2ff567eef7ee05','e529d7c309c182b36ed87a555482f0a60e394851961a61c13fcf59c06bbcde0c');
INSERT INTO "journal" VALUES('golden',30,'rollback-0003',1.79561934580908894544e+09,'intent','3','{"do": "program", "title": "program 5 PUCs of mesh"}',3,'0.1.0','e529d7c309c182b36ed87a555482f0a60e394851961a61c13fcf59c06bbcde0c','f4d9aa0baf50c2ba436057dca9ae1fd0faac9a71eb121eee2dbb88f43a29fbf0');
INSERT INTO "journal" VALUES('golden',31,'rollback-0003',1.79561934581257104867e+09,'outcome','3','{"answer": "ok 5 cells set", "cells": 5, "done": true, "revert_timer": "ours"}',3,'0.1.0','f4d9aa0baf50c2ba436057dca9ae1fd0faac9a71eb121eee2dbb88f43a29fbf0','74004db992cd62f0a515d873a962fea25e28e02d0cffb0521f8834ff6b551dd0');
INSERT INTO "journal" VALUES('golden',32,'rollback-0003',1.79561934581265044211e+09,'intent','4','{"do": "verify", "title": "verify 1 new circuit and 0 others on the same devices"}',3,'0.1.0','74004db992cd62f0a515d873a962fea25e28e02d0cffb0521f8834ff6b551dd0','7c3ea237cd7dcd6dd6503d4d629faf6f42863c270eaa504f4a98fc345524481d');
INSERT INTO "journal" VALUES('golden',33,'rollback-0003',1.79561934581902670859e+09,'outcome','4','{"done": true, "kept": 0, "proofs": [{"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g2-gpu0-a", "seconds": 0.005, "transmitter": "g1-gpu0-a"}, {"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g1-gpu0-a", "seconds": 0.005, "transmitter": "g2-gpu0-a"}]}',3,'0.1.0','7c3ea237cd7dcd6dd6503d4d629faf6f42863c270eaa504f4a98fc345524481d','90ede7ca3cfd73afbefdd162e4a335b5da82dbfe6ed040518923cfb7e548a454');
INSERT INTO "journal" VALUES('golden',34,'rollback-0003',1.79561934581907558443e+09,'intent','5','{"do": "assign", "title": "write down where pair runs"}',3,'0.1.0','90ede7ca3cfd73afbefdd162e4a335b5da82dbfe6ed040518923cfb7e548a454','50058b9eafb5798b1a0ec01a7b6344ea0033e6359032f9ec00852ff0f0939f95');
INSERT INTO "journal" VALUES('golden',35,'rollback-0003',1.79561934581983280185e+09,'outcome','5','{"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "done": true}',3,'0.1.0','50058b9eafb5798b1a0ec01a7b6344ea0033e6359032f9ec00852ff0f0939f95','36cecb6f4b264b2d9b01693fd8f98dc28ef28cc05aeebecece73955681d74023');
INSERT INTO "journal" VALUES('golden',36,'rollback-0003',1.79561934581989526751e+09,'end','','{"seconds": 0.0268, "state": "done", "undid": "swap-0002"}',3,'0.1.0','36cecb6f4b264b2d9b01693fd8f98dc28ef28cc05aeebecece73955681d74023','c7b4a51fa4c4f47b7a8b60407e10814273ed123dd05a69522d3bb9d0de822a32');
INSERT INTO "journal" VALUES('golden',37,'swap-0004',1.79561934585006093977e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "swap", "plan": "6da0d80626260442f2c2233804a4755afc81a4f6f0b1f57b87080cdd7cdf114a", "rack": "golden", "target": "sim", "title": "pair: replace g2-gpu0 by g3-gpu0", "who": "ops@console from 10.0.0.7"}',4,'0.1.0','c7b4a51fa4c4f47b7a8b60407e10814273ed123dd05a69522d3bb9d0de822a32','11070fc8fd14b92066a80b9ac25153926974b9cc9afc4b45c274c6561bc5e5a1');
INSERT INTO "journal" VALUES('golden',38,'swap-0004',1.79561934585177493091e+09,'intent','1','{"do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuit are sound"}',4,'0.1.0','11070fc8fd14b92066a80b9ac25153926974b9cc9afc4b45c274c6561bc5e5a1','9cbdf03710b90103e260255a2cd6e7d4d64f4dc58a42718eafb2629fadbdb7c7');
INSERT INTO "journal" VALUES('golden',39,'swap-0004',1.79561934586302495006e+09,'outcome','1','{"done": true, "sound": {"g1-gpu0-a": "g2-gpu0-a", "g2-gpu0-a": "g1-gpu0-a"}, "transmitting": {"g2-gpu0-a": true, "g3-gpu0-a": true}}',4,'0.1.0','9cbdf03710b90103e260255a2cd6e7d4d64f4dc58a42718eafb2629fadbdb7c7','aa865ebf85609ef9b0378401ccf91a532a157af08469c837db3ed26d23115e7b');
INSERT INTO "journal" VALUES('golden',40,'swap-0004',1.79561934586308765415e+09,'intent','2','{"do": "transmit", "title": "darken the transmitter of g2-gpu0-a"}',4,'0.1.0','aa865ebf85609ef9b0378401ccf91a532a157af08469c837db3ed26d23115e7b','63c409feaaaaaa0e6e07732bef41ade5a6d2a8801834cb33f1e9726be4e9b8e3');
INSERT INTO "journal" VALUES('golden',41,'swap-0004',1795619345.86309,'intent','3','{"do": "transmit", "title": "light the transmitter of g3-gpu0-a"}',4,'0.1.0','63c409feaaaaaa0e6e07732bef41ade5a6d2a8801834cb33f1e9726be4e9b8e3','e6c70d186d3e203c4a297c4b913de51d875d085c1103f6d59942f661f4445e7b');
INSERT INTO "journal" VALUES('golden',42,'swap-0004',1795619345.8657,'outcome','2','{"done": true, "is": false, "was": true}',4,'0.1.0','e6c70d186d3e203c4a297c4b913de51d875d085c1103f6d59942f661f4445e7b','8f4aa30a8681e4fe065ccfa02f7b1bde3ae53ddf273d360c45b11f8a3b083d7a');
INSERT INTO "journal" VALUES('golden',43,'swap-0004',1.7956193458657052517e+09,'outcome','3','{"done": true, "is": true, "was": true}',4,'0.1.0','8f4aa30a8681e4fe065ccfa02f7b1bde3ae53ddf273d360c45b11f8a3b083d7a','0da8e69dc2abed983976bba5104a949b685fb94554dfe37b1acd534722826d4f');
INSERT INTO "journal" VALUES('golden',44,'swap-0004',1.79561934586615753171e+09,'intent','4','{"do": "program", "title": "program 5 PUCs of mesh"}',4,'0.1.0','0da8e69dc2abed983976bba5104a949b685fb94554dfe37b1acd534722826d4f','5255edba2d9e7bfffcbffd36c1749153dbc60bc070448e67f81c125251094786');
INSERT INTO "journal" VALUES('golden',45,'swap-0004',1.79561934586926794056e+09,'outcome','4','{"answer": "ok 5 cells set", "cells": 5, "done": true, "revert_timer": "ours"}',4,'0.1.0','5255edba2d9e7bfffcbffd36c1749153dbc60bc070448e67f81c125251094786','f27f507852fb107826ed69f7ab713ddefb01e9e7fb78dbc68c968a96daab90b1');
INSERT INTO "journal" VALUES('golden',46,'swap-0004',1.7956193458693349361e+09,'intent','5','{"do": "verify", "title": "verify 1 new circuit and 0 others on the same devices"}',4,'0.1.0','f27f507852fb107826ed69f7ab713ddefb01e9e7fb78dbc68c968a96daab90b1','f1ced7cbcaf24082970493642461926b7d711276e52a46a4fb2ce6fdea13af30');
INSERT INTO "journal" VALUES('golden',47,'swap-0004',1.79561934690046548848e+09,'outcome','5','{"failed": "light was not verified within 1.0 s: g1-gpu0-a hears nobody instead of g3-gpu0-a"}',4,'0.1.0','f1ced7cbcaf24082970493642461926b7d711276e52a46a4fb2ce6fdea13af30','ae38ae3ed0d88ec49168c7753d3a645a72ec5b49cac75592da76a108c3ff7cb6');
INSERT INTO "journal" VALUES('golden',48,'swap-0004',1.79561934690210080146e+09,'undo-intent','5','{"do": "verify", "title": "verify 1 new circuit and 0 others on the same devices"}',4,'0.1.0','ae38ae3ed0d88ec49168c7753d3a645a72ec5b49cac75592da76a108c3ff7cb6','19a29ef9632a73dc3682136ba16035eb68719fb04b8eb970122453f7958c9988');
INSERT INTO "journal" VALUES('golden',49,'swap-0004',1.79561934690278148648e+09,'undo-outcome','5','{"undone": true}',4,'0.1.0','19a29ef9632a73dc3682136ba16035eb68719fb04b8eb970122453f7958c9988','aecfc6cf18b094399914c4d23f86268662f855d878ecb08497ee9236ae6adf5b');
INSERT INTO "journal" VALUES('golden',50,'swap-0004',1.79561934690934824941e+09,'undo-intent','4','{"do": "program", "title": "program 5 PUCs of mesh"}',4,'0.1.0','aecfc6cf18b094399914c4d23f86268662f855d878ecb08497ee9236ae6adf5b','556ad2fc21657d82aa4668259e4537732af59cee380ad5cba5479042c3581d9a');
INSERT INTO "journal" VALUES('golden',51,'swap-0004',1.79561934691262745861e+09,'undo-outcome','4','{"cells": 5, "undone": true}',4,'0.1.0','556ad2fc21657d82aa4668259e4537732af59cee380ad5cba5479042c3581d9a','66e04116b50a9ae8ca1a38a4f7a731cf68a26f4c0765edc5ed87f7d95c3222ae');
INSERT INTO "journal" VALUES('golden',52,'swap-0004',1.79561934691376376155e+09,'undo-intent','3','{"do": "transmit", "title": "light the transmitter of g3-gpu0-a"}',4,'0.1.0','66e04116b50a9ae8ca1a38a4f7a731cf68a26f4c0765edc5ed87f7d95c3222ae','03b5a7fc2a40407df0678661430450cca339c398a1b021ca63e6a946b14317e3');
INSERT INTO "journal" VALUES('golden',53,'swap-0004',1.79561934691438269615e+09,'undo-outcome','3','{"is": true, "undone": true}',4,'0.1.0','03b5a7fc2a40407df0678661430450cca339c398a1b021ca63e6a946b14317e3','4f45577a4ad1e17ca4610a18ff9e0c31ad5a0dae652623d57459f77b8fa1739e');
INSERT INTO "journal" VALUES('golden',54,'swap-0004',1.79561934691498112674e+09,'undo-intent','2','{"do": "transmit", "title": "darken the transmitter of g2-gpu0-a"}',4,'0.1.0','4f45577a4ad1e17ca4610a18ff9e0c31ad5a0dae652623d57459f77b8fa1739e','773c5f15dbee218a8c06f84c50c5e64a886ae8f1a8dea3f038a0735290938b3e');
INSERT INTO "journal" VALUES('golden',55,'swap-0004',1.79561934691668701174e+09,'undo-outcome','2','{"is": true, "undone": true}',4,'0.1.0','773c5f15dbee218a8c06f84c50c5e64a886ae8f1a8dea3f038a0735290938b3e','8609a3dc2364e599ca544f672b83d7e2f5b19fc466c46138c7f7b82adee34c9b');
INSERT INTO "journal" VALUES('golden',56,'swap-0004',1795619346.91733,'undo-intent','1','{"do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuit are sound"}',4,'0.1.0','8609a3dc2364e599ca544f672b83d7e2f5b19fc466c46138c7f7b82adee34c9b','0269753976175b0dfbe23ce067ca9928d7ff6ebda2b5f51b6c66cb0c80f4407e');
INSERT INTO "journal" VALUES('golden',57,'swap-0004',1.79561934691786336901e+09,'undo-outcome','1','{"undone": true}',4,'0.1.0','0269753976175b0dfbe23ce067ca9928d7ff6ebda2b5f51b6c66cb0c80f4407e','57b7774ef2c86168ebc4b0fb58d5d7288e73cf1d969ca464dc6f40fc423f3b68');
INSERT INTO "journal" VALUES('golden',58,'swap-0004',1.79561934692064070697e+09,'end','','{"failed": "light was not verified within 1.0 s: g1-gpu0-a hears nobody instead of g3-gpu0-a", "state": "rolled-back"}',4,'0.1.0','57b7774ef2c86168ebc4b0fb58d5d7288e73cf1d969ca464dc6f40fc423f3b68','0d0aaa898aa91f67779ff1363c13b4e5d3294d6504fb468e0b5a94aff92faa30');
INSERT INTO "journal" VALUES('golden',59,'set-0005',1.7956193469347462654e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "set", "plan": "4f15b2420ac39f77e365bbd5cfeda8ea0a5173ac5ea54e8689626f121d4c8e8c", "rack": "golden", "target": "sim", "title": "set g3-gpu0-a transmit=off", "who": "ops@console from 10.0.0.7"}',5,'0.1.0','0d0aaa898aa91f67779ff1363c13b4e5d3294d6504fb468e0b5a94aff92faa30','86d83d9819b07971c228f37ec9151b0c20683574867675d7795c97267b953b9f');
INSERT INTO "journal" VALUES('golden',60,'set-0005',1.79561934693629550929e+09,'intent','1','{"do": "set", "title": "set g3-gpu0-a transmit=off (it shows on)"}',5,'0.1.0','86d83d9819b07971c228f37ec9151b0c20683574867675d7795c97267b953b9f','09101bdf9b303aad8fee512e6feda17e006cd08390922e837321fb49c60ece49');
INSERT INTO "journal" VALUES('golden',61,'set-0005',1.79561934694284391399e+09,'outcome','1','{"done": true, "is": false, "was": true}',5,'0.1.0','09101bdf9b303aad8fee512e6feda17e006cd08390922e837321fb49c60ece49','632fc82a5c90d8f7e2a594ac699d40d9e429f32290ad43c0c41971e053d44e81');
INSERT INTO "journal" VALUES('golden',62,'set-0005',1.79561934694291138649e+09,'end','','{"seconds": 0.0066, "state": "done"}',5,'0.1.0','632fc82a5c90d8f7e2a594ac699d40d9e429f32290ad43c0c41971e053d44e81','548bc8ea543c0f1daa95ff454a505065574fe44567ca1eb6bc062b1ccf5cf41a');
INSERT INTO "journal" VALUES('golden',63,'ack-0006',1.7956193469449431896e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "ack", "plan": "45c9c4ae17b760356544f5ccb4e18eaa749433d63970f31c861ce240fdb0a6fd", "rack": "golden", "target": "sim", "title": "acknowledge g2-gpu0", "who": "ops@console from 10.0.0.7"}',0,'0.1.0','548bc8ea543c0f1daa95ff454a505065574fe44567ca1eb6bc062b1ccf5cf41a','b9ff6abaffdb6813021938d16bcd0d3a5f215a1d9623efa764c054c56cdeaa8e');
INSERT INTO "journal" VALUES('golden',64,'ack-0006',1.7956193469449431896e+09,'intent','1','{"do": "record", "title": "acknowledge g2-gpu0"}',0,'0.1.0','b9ff6abaffdb6813021938d16bcd0d3a5f215a1d9623efa764c054c56cdeaa8e','16e5b4f134fc4d2ebae34e25d9a4911b049289ea241483269c96155f20c523c6');
INSERT INTO "journal" VALUES('golden',65,'ack-0006',1.7956193469449431896e+09,'outcome','1','{"component": "g2-gpu0", "done": true, "rule": null, "was": []}',0,'0.1.0','16e5b4f134fc4d2ebae34e25d9a4911b049289ea241483269c96155f20c523c6','de612d24e68b6191a4dfdb7320bdad834621b4d03003d2d0c0d9db0090d8a672');
INSERT INTO "journal" VALUES('golden',66,'ack-0006',1.7956193469449431896e+09,'end','','{"seconds": 0.0, "state": "done"}',0,'0.1.0','de612d24e68b6191a4dfdb7320bdad834621b4d03003d2d0c0d9db0090d8a672','6cd07223b5dd8d7ac06160d0889a38c2f0ac95251f70257edeba2e0f26c22817');
INSERT INTO "journal" VALUES('golden',67,'maintain-0007',1.79561934694823193553e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "maintain", "plan": "eafd55cfbc49eefd92226bb0999e0aa548271dabf24251b1d90a52d4ee663950", "rack": "golden", "target": "sim", "title": "open-window g2-gpu0", "who": "ops@console from 10.0.0.7"}',0,'0.1.0','6cd07223b5dd8d7ac06160d0889a38c2f0ac95251f70257edeba2e0f26c22817','a812b5f1a243cb79981885eb1e65503f2b01c8899ced1e190fe8e3727e168390');
INSERT INTO "journal" VALUES('golden',68,'maintain-0007',1.79561934694823193553e+09,'intent','1','{"do": "record", "title": "open-window g2-gpu0"}',0,'0.1.0','a812b5f1a243cb79981885eb1e65503f2b01c8899ced1e190fe8e3727e168390','8aefc2564d129418a3097abad9e13b8cd1cf0b31de7b7c1e1a303ccc5d799efe');
INSERT INTO "journal" VALUES('golden',69,'maintain-0007',1.79561934694823193553e+09,'outcome','1','{"component": "g2-gpu0", "done": true, "window": "maintenance-f76b3d52"}',0,'0.1.0','8aefc2564d129418a3097abad9e13b8cd1cf0b31de7b7c1e1a303ccc5d799efe','1494b6b5185ab4f94b26861790596fa3938968ab53bb8d5a71cec9deeea666b7');
INSERT INTO "journal" VALUES('golden',70,'maintain-0007',1.79561934694823193553e+09,'end','','{"seconds": 0.0, "state": "done"}',0,'0.1.0','1494b6b5185ab4f94b26861790596fa3938968ab53bb8d5a71cec9deeea666b7','83c9bb30dec7208231126f18b9938566729528ac86c811753ed48442acc1b110');
INSERT INTO "journal" VALUES('golden',71,'maintain-0008',1.79561934695101881034e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "maintain", "plan": "5235ab7ede3b2142c56bd0682eada490a8b2d6b2ae4b859d7e68c0739aa05c0d", "rack": "golden", "target": "sim", "title": "end-window g2-gpu0", "who": "ops@console from 10.0.0.7"}',0,'0.1.0','83c9bb30dec7208231126f18b9938566729528ac86c811753ed48442acc1b110','6b4961d279c4606b5becef42302f3622f511437fbb7d3cb904d7d3506912a0bc');
INSERT INTO "journal" VALUES('golden',72,'maintain-0008',1.79561934695101881034e+09,'intent','1','{"do": "record", "title": "end-window g2-gpu0"}',0,'0.1.0','6b4961d279c4606b5becef42302f3622f511437fbb7d3cb904d7d3506912a0bc','1be94631905262abdb158d024b5e76521602c8740f2863ab999e140f6a238ec6');
INSERT INTO "journal" VALUES('golden',73,'maintain-0008',1.79561934695101881034e+09,'outcome','1','{"component": "g2-gpu0", "done": true, "ended": 1, "was": {"maintenance-f76b3d52": 1795622946.948232}}',0,'0.1.0','1be94631905262abdb158d024b5e76521602c8740f2863ab999e140f6a238ec6','a65ae3fde3b5e2310c167efe02abeda6ed3c69489f9df99ccd54bf3430d5a846');
INSERT INTO "journal" VALUES('golden',74,'maintain-0008',1.79561934695101881034e+09,'end','','{"seconds": 0.0, "state": "done"}',0,'0.1.0','a65ae3fde3b5e2310c167efe02abeda6ed3c69489f9df99ccd54bf3430d5a846','baf2f2b069203d9efbcc52bcfade8cf55d4f9959db166277dc4272ade629d580');
CREATE TABLE leases (
	rack VARCHAR NOT NULL, 
	holder TEXT NOT NULL, 
	fence INTEGER NOT NULL, 
	expires_at FLOAT NOT NULL, 
	process TEXT NOT NULL, 
	PRIMARY KEY (rack)
);
INSERT INTO "leases" VALUES('golden','ops@console from 10.0.0.7',5,0.0,'{"process": {"host": "vm", "boot_id": "c0cc1cee-9dbd-4b71-9db9-2ee687c4aff0:4026531836", "pid": 32160, "started": 4858133}, "ends_at": 48613.828148445}');
CREATE TABLE maintenance_windows (
	id VARCHAR NOT NULL, 
	rack VARCHAR NOT NULL, 
	component VARCHAR NOT NULL, 
	"by" VARCHAR NOT NULL, 
	comment TEXT NOT NULL, 
	starts FLOAT NOT NULL, 
	ends FLOAT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "maintenance_windows" VALUES('maintenance-f76b3d52','golden','g2-gpu0','ops@console from 10.0.0.7','a new card',1.79561934694823193553e+09,1.79561934695101881034e+09);
CREATE TABLE meta (
	"key" VARCHAR NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "meta" VALUES('schema_version','7');
INSERT INTO "meta" VALUES('lumctl','0.1.0');
CREATE TABLE plans (
	rack VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	digest VARCHAR NOT NULL, 
	created_at FLOAT NOT NULL, 
	target VARCHAR NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (rack, id)
);
CREATE TABLE readings (
	rack VARCHAR NOT NULL, 
	hour INTEGER NOT NULL, 
	component VARCHAR NOT NULL, 
	body BLOB NOT NULL, 
	PRIMARY KEY (rack, hour, component)
);
CREATE TABLE runs (
	rack VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	target VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	title TEXT NOT NULL, 
	"plan" TEXT NOT NULL, 
	plan_digest VARCHAR NOT NULL, 
	inventory_digest VARCHAR NOT NULL, 
	who VARCHAR NOT NULL, 
	version VARCHAR NOT NULL, 
	fence INTEGER NOT NULL, 
	state VARCHAR NOT NULL, 
	started_at FLOAT NOT NULL, 
	ended_at FLOAT, 
	undone_by VARCHAR, 
	PRIMARY KEY (rack, id)
);
INSERT INTO "runs" VALUES('golden','fabric-0001','sim','fabric','program 1 circuits of golden','{"schema": "lumctl/plan/v1", "id": "plan-f7642b7e", "digest": "f7642b7ef7dc7aacc983edaa8ef53e4c78ae2c9c4b42d48bfd28a9128018301d", "kind": "fabric", "title": "program 1 circuits of golden", "rack": "golden", "target": "sim", "created_at": 1795619345.559157, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.801, "warnings": ["mesh is written whole: all it carries goes dark meanwhile"], "replacements": [], "candidates": [], "circuits": {"add": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g2-gpu0-a", "port": 5}], "pucs": [0, 1, 2, 3, 4], "loss_db": 3.25, "expected_rx_dbm": -1.25, "margin_db": 14.55}], "remove": [], "keep": []}, "puc_changes": [{"device": "mesh", "puc": 0, "from": null, "to": "x"}, {"device": "mesh", "puc": 1, "from": null, "to": "x"}, {"device": "mesh", "puc": 2, "from": null, "to": "x"}, {"device": "mesh", "puc": 3, "from": null, "to": "x"}, {"device": "mesh", "puc": 4, "from": null, "to": "="}, {"device": "mesh", "puc": 5, "from": null, "to": "="}, {"device": "mesh", "puc": 6, "from": null, "to": "="}, {"device": "mesh", "puc": 7, "from": null, "to": "="}, {"device": "mesh", "puc": 8, "from": null, "to": "="}, {"device": "mesh", "puc": 9, "from": null, "to": "="}, {"device": "mesh", "puc": 10, "from": null, "to": "="}, {"device": "mesh", "puc": 11, "from": null, "to": "="}, {"device": "mesh", "puc": 12, "from": null, "to": "="}, {"device": "mesh", "puc": 13, "from": null, "to": "="}, {"device": "mesh", "puc": 14, "from": null, "to": "="}, {"device": "mesh", "puc": 15, "from": null, "to": "="}, {"device": "mesh", "puc": 16, "from": null, "to": "="}, {"device": "mesh", "puc": 17, "from": null, "to": "="}, {"device": "mesh", "puc": 18, "from": null, "to": "="}, {"device": "mesh", "puc": 19, "from": null, "to": "="}, {"device": "mesh", "puc": 20, "from": null, "to": "="}, {"device": "mesh", "puc": 21, "from": null, "to": "="}, {"device": "mesh", "puc": 22, "from": null, "to": "="}, {"device": "mesh", "puc": 23, "from": null, "to": "="}, {"device": "mesh", "puc": 24, "from": null, "to": "="}, {"device": "mesh", "puc": 25, "from": null, "to": "="}, {"device": "mesh", "puc": 26, "from": null, "to": "="}], "join_changes": [], "steps": [{"id": "1", "do": "check", "title": "find which of 0 circuits are sound", "data": {"healthy": [], "kept": [], "replaced": []}, "precondition": "", "verification": "", "undo": "nothing was done", "required": true, "expected_seconds": 0.2}, {"id": "2", "do": "program", "title": "program 27 PUCs of mesh", "data": {"device": "mesh", "changes": [[0, null, "x"], [1, null, "x"], [2, null, "x"], [3, null, "x"], [4, null, "="], [5, null, "="], [6, null, "="], [7, null, "="], [8, null, "="], [9, null, "="], [10, null, "="], [11, null, "="], [12, null, "="], [13, null, "="], [14, null, "="], [15, null, "="], [16, null, "="], [17, null, "="], [18, null, "="], [19, null, "="], [20, null, "="], [21, null, "="], [22, null, "="], [23, null, "="], [24, null, "="], [25, null, "="], [26, null, "="]]}, "precondition": "mesh holds what it did when this plan was made", "verification": "by the light that arrives", "undo": "write the 27 states from before", "required": true, "expected_seconds": 0.101, "stage": 1}, {"id": "3", "do": "verify", "title": "verify 1 new circuit and 0 others on the same devices", "data": {"circuits": ["pair/0-1"], "kept": []}, "precondition": "", "verification": "each receiver hears the intended transmitter", "undo": "nothing was done", "required": true, "expected_seconds": 0.5}, {"id": "4", "do": "assign", "title": "write down where pair runs", "data": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "before": {"pair": ["g1-gpu0", "g2-gpu0"]}}, "precondition": "", "verification": "", "undo": "write down the placement from before", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "crosses": {}}}','f7642b7ef7dc7aacc983edaa8ef53e4c78ae2c9c4b42d48bfd28a9128018301d','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',1,'done',1.7956193455886693001e+09,1.79561934562250757213e+09,NULL);
INSERT INTO "runs" VALUES('golden','swap-0002','sim','swap','pair: replace g2-gpu0 by g3-gpu0','{"schema": "lumctl/plan/v1", "id": "plan-8b9ed528", "digest": "8b9ed528e25d89e19e87b7d5608a9b386f6cb691f1478597f35651d97860209b", "kind": "swap", "title": "pair: replace g2-gpu0 by g3-gpu0", "rack": "golden", "target": "sim", "created_at": 1795619345.6501195, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.901, "warnings": ["job pair has no hook: pause or stop it before you apply this, and resume it afterwards"], "replacements": [{"job": "pair", "rank": 1, "failed": "g2-gpu0", "spare": "g3-gpu0"}], "candidates": [{"failed": "g2-gpu0", "spare": "g3-gpu0", "chosen": true, "reasons": ["the best there is", "10 PUCs in new circuits, 5 cells to write, worst loss 4.50 dB"], "rank": 1, "score": {"reserved": 1, "memory_gib": 0.0, "lanes": 0, "tied": 0, "faults": 0, "fresh": 0, "moves": 0, "thin": 0, "loss_db": 4.5, "pucs": 10, "cells": 5, "order": 2}}], "circuits": {"add": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g3-gpu0-a", "port": 10}], "pucs": [0, 1, 2, 3, 8, 14, 19, 25, 26, 20], "loss_db": 4.5, "expected_rx_dbm": -2.5, "margin_db": 13.3}], "remove": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g2-gpu0-a", "port": 5}], "pucs": [0, 1, 2, 3, 4], "loss_db": 3.25, "expected_rx_dbm": -1.25, "margin_db": 14.55}], "keep": []}, "puc_changes": [{"device": "mesh", "puc": 3, "from": "x", "to": "="}, {"device": "mesh", "puc": 8, "from": "=", "to": "x"}, {"device": "mesh", "puc": 14, "from": "=", "to": "x"}, {"device": "mesh", "puc": 19, "from": "=", "to": "x"}, {"device": "mesh", "puc": 20, "from": "=", "to": "x"}], "join_changes": [], "steps": [{"id": "1", "do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuit are sound", "data": {"healthy": ["g3-gpu0"], "kept": [], "replaced": ["pair/0-1"]}, "precondition": "a fresh reading says ok", "verification": "", "undo": "nothing was done", "required": true, "expected_seconds": 0.2}, {"id": "2", "do": "transmit", "title": "darken the transmitter of g2-gpu0-a", "data": {"transponder": "g2-gpu0-a", "enabled": false}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": false, "expected_seconds": 0.1, "stage": 1}, {"id": "3", "do": "transmit", "title": "light the transmitter of g3-gpu0-a", "data": {"transponder": "g3-gpu0-a", "enabled": true}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": true, "expected_seconds": 0.1, "stage": 1}, {"id": "4", "do": "program", "title": "program 5 PUCs of mesh", "data": {"device": "mesh", "changes": [[3, "x", "="], [8, "=", "x"], [14, "=", "x"], [19, "=", "x"], [20, "=", "x"]]}, "precondition": "mesh holds what it did when this plan was made", "verification": "by the light that arrives", "undo": "write the 5 states from before", "required": true, "expected_seconds": 0.101, "stage": 2}, {"id": "5", "do": "verify", "title": "verify 1 new circuit and 0 others on the same devices", "data": {"circuits": ["pair/0-1"], "kept": []}, "precondition": "", "verification": "each receiver hears the intended transmitter", "undo": "nothing was done", "required": true, "expected_seconds": 0.5}, {"id": "6", "do": "assign", "title": "write down where pair runs", "data": {"assignment": {"pair": ["g1-gpu0", "g3-gpu0"]}, "before": {"pair": ["g1-gpu0", "g2-gpu0"]}}, "precondition": "", "verification": "", "undo": "write down the placement from before", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "crosses": {"mesh": [0, 1, 2, 3]}}, "why": ["g3-gpu0 takes the place of g2-gpu0: there is no other spare"]}','8b9ed528e25d89e19e87b7d5608a9b386f6cb691f1478597f35651d97860209b','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',2,'undone',1.79561934574125242232e+09,1.79561934577104711533e+09,'rollback-0003');
INSERT INTO "runs" VALUES('golden','rollback-0003','sim','rollback','take back swap-0002 (pair: replace g2-gpu0 by g3-gpu0)','{"schema": "lumctl/plan/v1", "id": "plan-08abb361", "digest": "08abb3612bb9c589d941e4f73385cf0120151efff4215603bcf6a8f197a19875", "kind": "rollback", "title": "take back swap-0002 (pair: replace g2-gpu0 by g3-gpu0)", "rack": "golden", "target": "sim", "created_at": 1795619345.7840655, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": "swap-0002", "expected_seconds": 0.901, "warnings": ["job pair has no hook: pause or stop it before you apply this, and resume it afterwards"], "replacements": [], "candidates": [], "circuits": {"add": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g2-gpu0-a", "port": 5}], "pucs": [0, 1, 2, 3, 4], "loss_db": 3.25, "expected_rx_dbm": -1.25, "margin_db": 14.55}], "remove": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g3-gpu0-a", "port": 10}], "pucs": [0, 1, 2, 3, 8, 14, 19, 25, 26, 20], "loss_db": 4.5, "expected_rx_dbm": -2.5, "margin_db": 13.3}], "keep": []}, "puc_changes": [{"device": "mesh", "puc": 3, "from": "=", "to": "x"}, {"device": "mesh", "puc": 8, "from": "x", "to": "="}, {"device": "mesh", "puc": 14, "from": "x", "to": "="}, {"device": "mesh", "puc": 19, "from": "x", "to": "="}, {"device": "mesh", "puc": 20, "from": "x", "to": "="}], "join_changes": [], "steps": [{"id": "1", "do": "check", "title": "find which of 1 circuit are sound", "data": {"healthy": [], "kept": [], "replaced": ["pair/0-1"]}, "precondition": "", "verification": "", "undo": "nothing was done", "required": true, "expected_seconds": 0.2}, {"id": "2", "do": "transmit", "title": "light the transmitter of g2-gpu0-a", "data": {"transponder": "g2-gpu0-a", "enabled": true}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": false, "expected_seconds": 0.1, "stage": 1}, {"id": "3", "do": "program", "title": "program 5 PUCs of mesh", "data": {"device": "mesh", "changes": [[3, "=", "x"], [8, "x", "="], [14, "x", "="], [19, "x", "="], [20, "x", "="]]}, "precondition": "mesh holds what it did when this plan was made", "verification": "by the light that arrives", "undo": "write the 5 states from before", "required": true, "expected_seconds": 0.101, "stage": 2}, {"id": "4", "do": "verify", "title": "verify 1 new circuit and 0 others on the same devices", "data": {"circuits": ["pair/0-1"], "kept": []}, "precondition": "", "verification": "each receiver hears the intended transmitter", "undo": "nothing was done", "required": true, "expected_seconds": 0.5}, {"id": "5", "do": "assign", "title": "write down where pair runs", "data": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "before": {"pair": ["g1-gpu0", "g3-gpu0"]}}, "precondition": "", "verification": "", "undo": "write down the placement from before", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {"pair": ["g1-gpu0", "g3-gpu0"]}, "crosses": {"mesh": [0, 1, 2, 8, 14, 19, 20]}}}','08abb3612bb9c589d941e4f73385cf0120151efff4215603bcf6a8f197a19875','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',3,'done',1.79561934579150724415e+09,1.79561934581989526751e+09,NULL);
INSERT INTO "runs" VALUES('golden','swap-0004','sim','swap','pair: replace g2-gpu0 by g3-gpu0','{"schema": "lumctl/plan/v1", "id": "plan-6da0d806", "digest": "6da0d80626260442f2c2233804a4755afc81a4f6f0b1f57b87080cdd7cdf114a", "kind": "swap", "title": "pair: replace g2-gpu0 by g3-gpu0", "rack": "golden", "target": "sim", "created_at": 1795619345.8383365, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.124, "warnings": ["job pair has no hook: pause or stop it before you apply this, and resume it afterwards"], "replacements": [{"job": "pair", "rank": 1, "failed": "g2-gpu0", "spare": "g3-gpu0"}], "candidates": [{"failed": "g2-gpu0", "spare": "g3-gpu0", "chosen": true, "reasons": ["the best there is", "10 PUCs in new circuits, 5 cells to write, worst loss 4.50 dB"], "rank": 1, "score": {"reserved": 1, "memory_gib": 0.0, "lanes": 0, "tied": 0, "faults": 0, "fresh": 0, "moves": 0, "thin": 0, "loss_db": 4.5, "pucs": 10, "cells": 5, "order": 2}}], "circuits": {"add": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g3-gpu0-a", "port": 10}], "pucs": [0, 1, 2, 3, 8, 14, 19, 25, 26, 20], "loss_db": 4.5, "expected_rx_dbm": -2.5, "margin_db": 13.3}], "remove": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g2-gpu0-a", "port": 5}], "pucs": [0, 1, 2, 3, 4], "loss_db": 3.25, "expected_rx_dbm": -1.25, "margin_db": 14.55}], "keep": []}, "puc_changes": [{"device": "mesh", "puc": 3, "from": "x", "to": "="}, {"device": "mesh", "puc": 8, "from": "=", "to": "x"}, {"device": "mesh", "puc": 14, "from": "=", "to": "x"}, {"device": "mesh", "puc": 19, "from": "=", "to": "x"}, {"device": "mesh", "puc": 20, "from": "=", "to": "x"}], "join_changes": [], "steps": [{"id": "1", "do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuit are sound", "data": {"healthy": ["g3-gpu0"], "kept": [], "replaced": ["pair/0-1"]}, "precondition": "a fresh reading says ok", "verification": "", "undo": "nothing was done", "required": true, "expected_seconds": 0.013}, {"id": "2", "do": "transmit", "title": "darken the transmitter of g2-gpu0-a", "data": {"transponder": "g2-gpu0-a", "enabled": false}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": false, "expected_seconds": 0.1, "stage": 1}, {"id": "3", "do": "transmit", "title": "light the transmitter of g3-gpu0-a", "data": {"transponder": "g3-gpu0-a", "enabled": true}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": true, "expected_seconds": 0.1, "stage": 1}, {"id": "4", "do": "program", "title": "program 5 PUCs of mesh", "data": {"device": "mesh", "changes": [[3, "x", "="], [8, "=", "x"], [14, "=", "x"], [19, "=", "x"], [20, "=", "x"]]}, "precondition": "mesh holds what it did when this plan was made", "verification": "by the light that arrives", "undo": "write the 5 states from before", "required": true, "expected_seconds": 0.0038, "stage": 2}, {"id": "5", "do": "verify", "title": "verify 1 new circuit and 0 others on the same devices", "data": {"circuits": ["pair/0-1"], "kept": []}, "precondition": "", "verification": "each receiver hears the intended transmitter", "undo": "nothing was done", "required": true, "expected_seconds": 0.0064}, {"id": "6", "do": "assign", "title": "write down where pair runs", "data": {"assignment": {"pair": ["g1-gpu0", "g3-gpu0"]}, "before": {"pair": ["g1-gpu0", "g2-gpu0"]}}, "precondition": "", "verification": "", "undo": "write down the placement from before", "required": true, "expected_seconds": 0.001}], "start": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "crosses": {"mesh": [0, 1, 2, 3]}}, "why": ["g3-gpu0 takes the place of g2-gpu0: there is no other spare"], "measured": {"1": 3, "4": 3, "5": 3, "6": 3}}','6da0d80626260442f2c2233804a4755afc81a4f6f0b1f57b87080cdd7cdf114a','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',4,'rolled-back',1.79561934585006093977e+09,1.79561934692064070697e+09,NULL);
INSERT INTO "runs" VALUES('golden','set-0005','sim','set','set g3-gpu0-a transmit=off','{"schema": "lumctl/plan/v1", "id": "plan-4f15b242", "digest": "4f15b2420ac39f77e365bbd5cfeda8ea0a5173ac5ea54e8689626f121d4c8e8c", "kind": "set", "title": "set g3-gpu0-a transmit=off", "rack": "golden", "target": "sim", "created_at": 1795619346.9276192, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.1, "warnings": [], "replacements": [], "candidates": [], "circuits": {"add": [], "remove": [], "keep": []}, "puc_changes": [], "join_changes": [], "steps": [{"id": "1", "do": "set", "title": "set g3-gpu0-a transmit=off (it shows on)", "data": {"component": "g3-gpu0-a", "setting": "transmit", "before": true, "after": false, "disturbs": []}, "precondition": "g3-gpu0-a shows transmit=on", "verification": "read back", "undo": "set transmit=on", "required": true, "expected_seconds": 0.1}], "start": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "crosses": {}}}','4f15b2420ac39f77e365bbd5cfeda8ea0a5173ac5ea54e8689626f121d4c8e8c','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',5,'done',1.7956193469347462654e+09,1.79561934694291138649e+09,NULL);
INSERT INTO "runs" VALUES('golden','ack-0006','sim','ack','acknowledge g2-gpu0','{"id": "plan-45c9c4ae", "digest": "45c9c4ae17b760356544f5ccb4e18eaa749433d63970f31c861ce240fdb0a6fd", "schema": "lumctl/plan/v1", "kind": "ack", "title": "acknowledge g2-gpu0", "rack": "golden", "target": "sim", "created_at": 1795619346.9449432, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.0, "warnings": [], "replacements": [], "candidates": [], "circuits": {"add": [], "remove": [], "keep": []}, "puc_changes": [], "join_changes": [], "steps": [{"id": "1", "do": "record", "title": "acknowledge g2-gpu0", "data": {"rack": "golden", "component": "g2-gpu0", "act": "acknowledge", "rule": null, "comment": "the vendor is called", "for_s": 7200.0}, "precondition": "", "verification": "", "undo": "the opposite is said", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {}, "crosses": {}}}','45c9c4ae17b760356544f5ccb4e18eaa749433d63970f31c861ce240fdb0a6fd','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',0,'done',1.7956193469449431896e+09,1.7956193469449431896e+09,NULL);
INSERT INTO "runs" VALUES('golden','maintain-0007','sim','maintain','open-window g2-gpu0','{"id": "plan-eafd55cf", "digest": "eafd55cfbc49eefd92226bb0999e0aa548271dabf24251b1d90a52d4ee663950", "schema": "lumctl/plan/v1", "kind": "maintain", "title": "open-window g2-gpu0", "rack": "golden", "target": "sim", "created_at": 1795619346.948232, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.0, "warnings": [], "replacements": [], "candidates": [], "circuits": {"add": [], "remove": [], "keep": []}, "puc_changes": [], "join_changes": [], "steps": [{"id": "1", "do": "record", "title": "open-window g2-gpu0", "data": {"rack": "golden", "component": "g2-gpu0", "act": "open-window", "comment": "a new card", "starts_in_s": 0.0, "for_s": 3600.0}, "precondition": "", "verification": "", "undo": "the opposite is said", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {}, "crosses": {}}}','eafd55cfbc49eefd92226bb0999e0aa548271dabf24251b1d90a52d4ee663950','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',0,'done',1.79561934694823193553e+09,1.79561934694823193553e+09,NULL);
INSERT INTO "runs" VALUES('golden','maintain-0008','sim','maintain','end-window g2-gpu0','{"id": "plan-5235ab7e", "digest": "5235ab7ede3b2142c56bd0682eada490a8b2d6b2ae4b859d7e68c0739aa05c0d", "schema": "lumctl/plan/v1", "kind": "maintain", "title": "end-window g2-gpu0", "rack": "golden", "target": "sim", "created_at": 1795619346.9510188, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.0, "warnings": [], "replacements": [], "candidates": [], "circuits": {"add": [], "remove": [], "keep": []}, "puc_changes": [], "join_changes": [], "steps": [{"id": "1", "do": "record", "title": "end-window g2-gpu0", "data": {"rack": "golden", "component": "g2-gpu0", "act": "end-window"}, "precondition": "", "verification": "", "undo": "the opposite is said", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {}, "crosses": {}}}','5235ab7ede3b2142c56bd0682eada490a8b2d6b2ae4b859d7e68c0739aa05c0d','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',0,'done',1.79561934695101881034e+09,1.79561934695101881034e+09,NULL);
CREATE TABLE transitions (
	rack VARCHAR NOT NULL, 
	seq INTEGER NOT NULL, 
	at FLOAT NOT NULL, 
	component VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	"before" VARCHAR, 
	"after" VARCHAR NOT NULL, 
	rules TEXT NOT NULL, 
	evidence TEXT NOT NULL, 
	PRIMARY KEY (rack, seq)
);
CREATE INDEX entries_of_a_kind ON journal (rack, kind);
CREATE INDEX entries_of_a_run ON journal (rack, run);
CREATE INDEX ix_maintenance_windows_rack ON maintenance_windows (rack);
CREATE INDEX transitions_of_a_component ON transitions (rack, component, seq);
COMMIT;
